"""Corrects times that were recorded while the node's clock was ahead, and reports that once.

Otherwise a node that is resumed while its clock is in the future would ignore every kernel error until that time.
The uptime, which setting the clock does not change, still shows how long ago the resume was.
"""

from __future__ import annotations

from dataclasses import replace

from rackwright.health.guard.memory import Memory
from rackwright.health.probe.source import Source, number

TOLERANCE_SECONDS = 5.0
"""Allows for concurrent passes and a slewed clock."""


def boot_of(source: Source) -> tuple[str, float | None]:
    """Boot ID and uptime in seconds; None if the node does not report the uptime."""
    uptime = number((source.maybe("/proc/uptime") or "").strip() or None)
    return (source.maybe("/proc/sys/kernel/random/boot_id") or "").strip(), uptime


def set_back(memory: Memory, now: float) -> float:
    """Seconds, at least, by which the clock was set back since the memory was saved; 0.0 if it was not."""
    latest = max((memory.excused_until, *memory.reboots))
    return latest - now if latest > now + TOLERANCE_SECONDS else 0.0


def resume_ahead(memory: Memory, now: float) -> float:
    """Seconds by which the last resume is ahead of the clock; 0.0 if it is not."""
    ahead = memory.excused_until - now
    return ahead if ahead > TOLERANCE_SECONDS else 0.0


def put_right(memory: Memory, now: float, boot: str, uptime: float | None) -> Memory:
    """The memory without times that are ahead of the clock.

    If the resume was in this boot, its time comes from the uptime. If it was in an earlier boot, nothing in this boot is
    excused. Without a record of the boot it is now, because an operator may have seen the earlier lines.
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
    """The document without its kernel log, which is not judged in this pass."""
    why = (
        f"the clock was set back by {seconds:.0f} s since the node was resumed; judged again in the next pass"
    )
    sections = document.get("sections")
    without = dict(sections) if isinstance(sections, dict) else {}
    without["kernel_log"] = {"ok": False, "why": why}
    return {**document, "sections": without}
