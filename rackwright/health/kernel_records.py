"""Errors in the kernel log, as the checks read them."""

from __future__ import annotations

from rackwright.health.probe.kernel_events import KEPT_PER_KIND
from rackwright.health.records import (
    Record,
    Unreadable,
    counts,
    many,
    real,
    real_or_none,
    whole,
    whole_or_none,
    word,
    word_or_none,
    words_or_none,
)


class LogEntry(Record):
    """Identical kernel errors, merged; see `rackwright.health.probe.kernel_events`."""

    kind: str = word()
    device: str | None = word_or_none()
    """A PCI address, a block device or an interface, depending on the kind."""
    server: str | None = word_or_none()
    first: float = real()
    at: float = real()
    """The last time."""
    back_at: float | None = real_or_none()
    """When a server answered again."""
    times: int = whole()
    bursts: int = whole()
    """Minutes and processes."""
    message: str = word()
    code: int | None = whole_or_none()
    severity: str | None = word_or_none()
    cause: int | None = whole_or_none()
    """The XID that caused this one."""
    recovery: str | None = word_or_none()
    driver: str | None = word_or_none()
    where: str | None = word_or_none()
    """Kind of the PCI device: gpu, nvswitch, rdma, nvme or other; None: not on the bus."""
    mounts: list[str] | None = words_or_none()
    """Mount points of the block device; None: unknown."""
    gbps: float | None = real_or_none()
    speed: float | None = real_or_none()
    width: float | None = real_or_none()
    best: float | None = real_or_none()
    wide: float | None = real_or_none()


class KernelLogSection(Record):
    """Errors of the last day; `counts` has the number of lines by kind."""

    since: int = whole()
    lines: int = whole()
    entries: list[LogEntry] = many(LogEntry)
    counts: dict[str, int] = counts()

    def of(self, *kinds: str) -> list[LogEntry]:
        """The entries of these kinds, oldest first."""
        found = [one for one in self.entries if one.kind in kinds]
        if len(found) > KEPT_PER_KIND * len(kinds):  # the probe keeps no more, and some checks are quadratic
            raise Unreadable(f"{self.place}.entries has {len(found)} of {', '.join(kinds)}")
        return sorted(found, key=lambda one: one.at)
