"""Times that were kept while the node's clock was ahead: put right, and said so once.

A node that is resumed while its clock is in the future would otherwise ignore every complaint of the kernel until that
time comes. How long ago the resume was is still known by the uptime, which no setting of the clock changes.
"""

from __future__ import annotations

from dataclasses import replace

from rackwright.health.guard.memory import Memory
from rackwright.health.probe.source import Source, number

TOLERANCE_SECONDS = 5.0
"""Passes beside each other, and a clock that is slewed."""


def boot_of(source: Source) -> tuple[str, float | None]:
    """This boot, and how long it lasts; None where the node does not say."""
    uptime = number((source.maybe("/proc/uptime") or "").strip() or None)
    return (source.maybe("/proc/sys/kernel/random/boot_id") or "").strip(), uptime


def set_back(memory: Memory, now: float) -> float:
    """By how many seconds, at least, the clock was set back since the memory was kept; 0.0: it was not."""
    latest = max((memory.excused_until, *memory.reboots))
    return latest - now if latest > now + TOLERANCE_SECONDS else 0.0


def resume_ahead(memory: Memory, now: float) -> float:
    """By how many seconds the last resume is dated ahead of the clock; 0.0: it is not."""
    ahead = memory.excused_until - now
    return ahead if ahead > TOLERANCE_SECONDS else 0.0


def put_right(memory: Memory, now: float, boot: str, uptime: float | None) -> Memory:
    """The memory without times that are ahead of the clock.

    Of this boot: when the node was resumed, by the uptime. Of an earlier one: nothing of this boot is excused. Without
    a record of the boot: now, as earlier lines may be those that an operator has seen.
    """
    if not set_back(memory, now):
        return memory
    since = memory.excused_until
    if since > now:
        since = now
        if memory.excused_boot and boot and memory.excused_boot != boot:
            since = 0.0
        elif memory.excused_boot and boot and uptime is not None and memory.excused_uptime is not None:
            since = now - max(0.0, uptime - memory.excused_uptime)
    return replace(memory, excused_until=since, reboots=tuple(min(at, now) for at in memory.reboots))


def without_log(document: dict[str, object], seconds: float) -> dict[str, object]:
    """The document whose kernel log is not judged in this pass."""
    why = (
        f"the clock was set back by {seconds:.0f} s since the node was resumed; judged again in the next pass"
    )
    sections = document.get("sections")
    told = dict(sections) if isinstance(sections, dict) else {}
    told["kernel_log"] = {"ok": False, "why": why}
    return {**document, "sections": told}
