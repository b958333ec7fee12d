"""Sets BIOS attributes of one node: pending first, then a boot, then read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from rackwright.bmc.target import NoAnswer
from rackwright.errors import FirmwareError
from rackwright.firmware.asking import Asking
from rackwright.firmware.compare import Line, judge
from rackwright.firmware.plan import attributes_to_set
from rackwright.firmware.reading import Reading, read, same
from rackwright.model.firmware import Baseline


@dataclass
class BiosNode:
    """One node, out of service; FirmwareError, BmcError or NotBooted where it does not get there."""

    asking: Asking
    baseline: Baseline
    boot: Callable[[], None]
    """Boots the node in good order, and waits for it."""
    notice: Callable[[str], None] = lambda text: None

    def run(self) -> tuple[str, ...]:
        """Set what differs; what is as declared now and was not."""
        wanted = attributes_to_set(judge(self.baseline, self._reading()))
        if not wanted:
            return ()
        self._make_pending(wanted)
        self.boot()
        self.asking.until(lambda: not self._left(), self.asking.tempo.settle)
        if left := self._left():
            texts = [f"{line.what} is {line.found}, but {line.declared} is declared" for line in left]
            raise FirmwareError(
                f"The node has booted, but BIOS attributes are not as declared: {'; '.join(texts)}.",
                hint="another attribute may control them; see the vendor's release notes and the BMC's web interface",
            )
        return tuple(f"{name} {value}" for name, value in wanted.items())

    def _reading(self) -> Reading:
        reading = self.asking.ask(partial(read, baseline=self.baseline))
        if reading.attributes_error is not None:
            raise FirmwareError(reading.attributes_error)
        return reading

    def _left(self) -> list[Line]:
        lines = judge(self.baseline, self._reading())
        missing = attributes_to_set(lines)
        return [line for line in lines if line.attribute and line.what in missing]

    def _make_pending(self, wanted: Mapping[str, object]) -> None:
        """Have the next boot set them; an interrupted run may have done so already."""
        if not _lacking(wanted, self._reading().pending):
            self.notice("the attributes are already pending")
            return
        self.notice(
            "set with the next boot: " + ", ".join(f"{name}={value}" for name, value in wanted.items())
        )
        unanswered: NoAnswer | None = None
        try:
            self.asking.change(lambda client: client.set_bios(dict(wanted)))
        except NoAnswer as error:
            unanswered = error
        pending = self._reading().pending
        lacking = _lacking(wanted, pending)
        if lacking and unanswered is not None:
            raise unanswered
        if lacking and pending:  # some BMCs do not show what is pending: the boot shows it
            kept = ", ".join(sorted(set(wanted) - set(lacking))) or "none of them"
            raise FirmwareError(
                f"The BMC did not accept {', '.join(lacking)}; for the next boot it has {kept}.",
                hint="correct `bios_attributes`; the next boot sets what the BMC already has pending",
            )


def _lacking(wanted: Mapping[str, object], pending: Mapping[str, object]) -> list[str]:
    return sorted(name for name, value in wanted.items() if not same(value, pending.get(name)))
