"""Questions to the rack's Prometheus servers, and waiting for an answer."""

from __future__ import annotations

import json
from functools import partial

from tests.racks import patience
from tests.racks.alerts_pair.conftest import HEADS
from tests.racks.site import Site

_PASSWORD = '"prometheus:$(cat /etc/rackwright-exporters/prometheus/password)"'
until = partial(patience.until, seconds=90, every=1)


def own(
    rack: Site, head: str, expression: str, *, url: str | None = None, login: str = _PASSWORD
) -> list[dict[str, object]]:
    """What a Prometheus on this head answers, by default the one of the role."""
    api = f"{url or f'https://{HEADS[head]}:9090'}/api/v1/query"
    answer = rack.on(
        head,
        f"curl -s -m 20 --retry 9 --retry-connrefused -u {login} --data-urlencode 'query={expression}' '{api}'",
    )
    found: list[dict[str, object]] = json.loads(answer)["data"]["result"]
    return found
