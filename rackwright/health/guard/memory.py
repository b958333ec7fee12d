"""The site's policy, and the memory that a node keeps between passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rackwright.health.guard.found import Found, Outcome
from rackwright.health.records import time_of
from rackwright.health.verdict import HealthResult
from rackwright.status import Status
from rackwright.workload.states import NodeState


@dataclass(frozen=True)
class Policy:
    """The site's policy; the defaults are the role's."""

    act: bool = False
    """Whether the node drains, reboots and refuses jobs, or only records what it would have done."""
    clean_passes: int = 3
    unknown: str = "alert"
    """`alert` or `drain`: what to do with a node whose state stays UNKNOWN."""
    unknown_passes: int = 3
    drain_percent: float = 10.0
    reboots_a_day: int = 0
    probe_seconds: float = 20.0
    prolog_seconds: float = 5.0
    busy_query_hours: float = 4.0
    textfile_dir: str = ""


@dataclass(frozen=True)
class Memory:
    """The memory that a node keeps between passes."""

    clean: int = 0
    """Clean passes in a row."""
    unknown: dict[str, int] = field(default_factory=dict)
    """For each check that was UNKNOWN in the last pass: the number of consecutive UNKNOWN passes."""
    drained: bool = False
    """The health check drained the node and has not resumed it."""
    confirmed: bool = False
    """Whether the workload manager has reported the node's drain state since this memory began."""
    excused_until: float = 0.0
    """Kernel errors before this time, in seconds since the epoch, do not count against the node."""
    reboots: tuple[float, ...] = ()
    alert: str | None = None
    """What an operator has to look at, because the health check may not act."""
    passed: tuple[str, ...] = ()
    """Checks that have passed on this node with the same `basis`, so they are known to work here."""
    basis: str = ""
    """Declaration, modules, kernel and driver for which `passed` was collected."""
    excused_boot: str = ""
    """The boot in which `excused_until` was set, and the uptime at that time, in case the clock is set back."""
    excused_uptime: float | None = None

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Memory:
        """The reverse of `to_json`; TypeError or ValueError for anything else."""
        kept = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        kept["reboots"] = tuple(time_of(at) for at in data.get("reboots", ()))
        kept["excused_until"] = time_of(data.get("excused_until", 0.0))
        uptime = data.get("excused_uptime")
        kept["excused_uptime"] = time_of(uptime) if uptime is not None else None
        kept["excused_boot"] = str(data.get("excused_boot", ""))
        kept["passed"] = tuple(str(check) for check in data.get("passed", ()))
        counts = data.get("unknown")  # earlier versions kept one number for all checks
        kept["unknown"] = (
            {str(check): int(n) for check, n in counts.items()} if isinstance(counts, dict) else {}
        )
        return cls(**kept)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def excused(
    memory: Memory, node: NodeState, now: float, boot: str = "", uptime: float | None = None
) -> Memory:
    """The memory after an operator resumed a node that the health check had drained, knowing why."""
    if not memory.drained or node.drained or node.down:
        return memory
    return replace(
        memory, drained=False, excused_until=now, excused_boot=boot, excused_uptime=uptime, alert=None
    )


def counted(memory: Memory, found: Found) -> Memory:
    """The memory after another pass of the scheduler's health check."""
    unknown = found.checks if found.outcome is Outcome.UNKNOWN else ()
    return replace(
        memory,
        clean=memory.clean + 1 if found.outcome is Outcome.CLEAN else 0,
        unknown={check: memory.unknown.get(check, 0) + 1 for check in unknown},
    )


def uncounted(memory: Memory, found: Found) -> Memory:
    """The memory after a prolog or an epilog, which can end a streak of clean passes but not begin one."""
    return replace(memory, clean=memory.clean if found.outcome is Outcome.CLEAN else 0)


def learned(memory: Memory, results: Sequence[HealthResult], basis: str) -> Memory:
    """The memory with the checks that passed; starts over when the declaration or the driver changes."""
    passed = {one.check for one in results if one.status is Status.PASS}
    passed -= {one.check for one in results if one.status is Status.UNKNOWN}
    if basis == memory.basis:
        passed.update(memory.passed)
    return replace(memory, passed=tuple(sorted(passed)), basis=basis)


def lasting(policy: Policy, memory: Memory, found: Found) -> Found:
    """What has been unknown for several passes in a row; empty for any other outcome."""
    if found.outcome is not Outcome.UNKNOWN:
        return Found(Outcome.CLEAN)
    long = {check for check, passes in memory.unknown.items() if passes >= policy.unknown_passes}
    if not found.results:
        return found if long else Found(Outcome.CLEAN)
    results = tuple(one for one in found.results if one.check in long)
    return Found(Outcome.UNKNOWN if results else Outcome.CLEAN, results)
