"""What the site wants, and what a node remembers from pass to pass."""

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
    """What the site wants; the defaults are the role's."""

    act: bool = False
    """Whether the node drains, reboots and refuses jobs, or only records what it would have done."""
    clean_passes: int = 3
    unknown: str = "alert"
    """`alert` or `drain`: what is done about a node of which too little is known."""
    unknown_passes: int = 3
    drain_percent: float = 10.0
    reboots_a_day: int = 0
    probe_seconds: float = 20.0
    prolog_seconds: float = 5.0
    busy_query_hours: float = 4.0
    textfile_dir: str = ""


@dataclass(frozen=True)
class Memory:
    """What a node remembers from pass to pass."""

    clean: int = 0
    """Clean passes in a row."""
    unknown: dict[str, int] = field(default_factory=dict)
    """For each check that was UNKNOWN in the last pass, in how many passes in a row."""
    drained: bool = False
    """We drained the node and have not resumed it."""
    confirmed: bool = False
    """Since this memory began, the workload manager has said who drained the node, if anyone."""
    excused_until: float = 0.0
    """Complaints of the kernel before this, seconds since the epoch, are not held against the node."""
    reboots: tuple[float, ...] = ()
    alert: str | None = None
    """What an operator has to look at, because we may not act."""
    passed: tuple[str, ...] = ()
    """Checks that have passed on this node with the same `basis`: those that can be answered here."""
    basis: str = ""
    """Declaration, modules, kernel and driver with which `passed` was collected."""
    excused_boot: str = ""
    """The boot in which `excused_until` was set, and its uptime then: the clock may be set back later."""
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
    """The memory once a node that we drained was resumed by an operator, who has seen why."""
    if not memory.drained or node.drained or node.down:
        return memory
    return replace(
        memory, drained=False, excused_until=now, excused_boot=boot, excused_uptime=uptime, alert=None
    )


def counted(memory: Memory, found: Found) -> Memory:
    """The memory after one more pass of the scheduler's health check."""
    unknown = found.checks if found.outcome is Outcome.UNKNOWN else ()
    return replace(
        memory,
        clean=memory.clean + 1 if found.outcome is Outcome.CLEAN else 0,
        unknown={check: memory.unknown.get(check, 0) + 1 for check in unknown},
    )


def uncounted(memory: Memory, found: Found) -> Memory:
    """The memory after a prolog or an epilog: it ends a row of clean passes and begins none."""
    return replace(memory, clean=memory.clean if found.outcome is Outcome.CLEAN else 0)


def learned(memory: Memory, results: Sequence[HealthResult], basis: str) -> Memory:
    """The memory with the checks that passed; it starts anew where another declaration or driver is judged."""
    passed = {one.check for one in results if one.status is Status.PASS}
    passed -= {one.check for one in results if one.status is Status.UNKNOWN}
    if basis == memory.basis:
        passed.update(memory.passed)
    return replace(memory, passed=tuple(sorted(passed)), basis=basis)


def lasting(policy: Policy, memory: Memory, found: Found) -> Found:
    """What has not been known for several passes in a row; nothing where the outcome is another."""
    if found.outcome is not Outcome.UNKNOWN:
        return Found(Outcome.CLEAN)
    long = {check for check, passes in memory.unknown.items() if passes >= policy.unknown_passes}
    if not found.results:
        return found if long else Found(Outcome.CLEAN)
    results = tuple(one for one in found.results if one.check in long)
    return Found(Outcome.UNKNOWN if results else Outcome.CLEAN, results)
