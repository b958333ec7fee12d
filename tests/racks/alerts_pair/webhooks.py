"""The drills' webhook on both heads at once, and what came to either."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from rackwright.drill.notifications import Notifications
from tests.racks.alerts_pair.conftest import HEADS
from tests.racks.site import Site

PORT = 9099
_ONCE_SECONDS = 20
"""The second of a pair waits 15 s for the first one's notification; so long would another of the same take."""


@dataclass(frozen=True)
class Webhooks:
    """By head."""

    rack: Site
    of: dict[str, Notifications]

    def wait(self, alert: str, labels: dict[str, str], status: str, seconds: float = 120) -> tuple[str, ...]:
        """The heads that sent it, once one of them has and a little later."""
        end = time.monotonic() + seconds
        while not self.sent(alert, labels, status):
            assert time.monotonic() < end, f"no {status} {alert} within {seconds:.0f} s: {self._known()}"
            time.sleep(1)
        time.sleep(_ONCE_SECONDS)
        return self.sent(alert, labels, status)

    def sent(self, alert: str, labels: dict[str, str], status: str) -> tuple[str, ...]:
        """The heads that sent it so far."""
        return tuple(head for head, one in self.of.items() if one.seen(alert, labels, status, 0))

    def _known(self) -> str:
        """What Alertmanager knows and sends."""
        ask = "amtool alert query; journalctl -u prometheus-alertmanager -n 15 --no-pager; cat /run/rackwright-drill/notifications"
        return "\n".join(self.rack.on(head, ask) for head in self.of)


@contextmanager
def webhooks(rack: Site, *heads: str) -> Iterator[Webhooks]:
    """On these heads, on both where none is named."""
    with ExitStack() as stack:
        names = heads or tuple(HEADS)
        yield Webhooks(
            rack, {head: stack.enter_context(Notifications(rack.rack, head, PORT)) for head in names}
        )
