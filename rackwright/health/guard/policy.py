"""Whether this node is drained, resumed, rebooted or left alone: one pure function of what is known.

Rules, each with the failure it prevents:

- A node that another user or tool took out of service is left alone, whatever is found on it.
- A node is resumed only if its reason is ours, and only after several clean passes in a row.
- UNKNOWN is no pass: it ends a row of clean ones. It drains, if the site wants that, once it lasts.
- No more than a share of each group of nodes (Slurm: a partition) is ever drained by health checks.
  Past it they are more likely wrong than the nodes, and an alert is raised instead.
- A reboot happens on a node that is drained by us and empty, a few times a day at most.
- Whoever resumes a node that we drained has seen why: complaints of the kernel before that moment
  are no longer held against it. What still is wrong drains it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from rackwright.health.judge import all_checks
from rackwright.health.verdict import Action, HealthResult
from rackwright.status import Status
from rackwright.workload.states import HEALTH_PREFIX, DrainShare, NodeState

REASON_MAX_CHARACTERS = 200
DAY_SECONDS = 86400.0
_ACTIONS = {check.id: check.action for check in all_checks()}


@dataclass(frozen=True)
class Policy:
    """What the site wants; the defaults are the role's."""

    clean_passes: int = 3
    unknown: str = "drain"
    """`drain` or `keep`: what is done about a node of which too little is known."""
    unknown_passes: int = 3
    drain_percent: float = 10.0
    reboots_a_day: int = 0
    fast_seconds: float = 0.9
    textfile_dir: str = ""


@dataclass(frozen=True)
class Memory:
    """What a node remembers from pass to pass."""

    clean: int = 0
    """Clean passes in a row."""
    unknown: int = 0
    """Passes in a row in which too little was known."""
    drained: bool = False
    """We drained the node and have not resumed it."""
    excused_until: float = 0.0
    """Complaints of the kernel before this, seconds since the epoch, are not held against the node."""
    reboots: tuple[float, ...] = ()
    alert: str | None = None
    """What a human has to look at, because we may not act."""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Memory:
        """The reverse of `to_json`; TypeError or ValueError for what is none."""
        kept = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        kept["reboots"] = tuple(float(at) for at in data.get("reboots", ()))
        return cls(**kept)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


class Outcome(Enum):
    """What a pass came to."""

    CLEAN = "clean"
    UNKNOWN = "unknown"
    BAD = "bad"


@dataclass(frozen=True)
class Found:
    """A verdict as far as it concerns the scheduler."""

    outcome: Outcome
    results: tuple[HealthResult, ...] = ()
    """Those that decide: what is bad, or what is not known."""

    @property
    def action(self) -> Action:
        """The hardest that is asked for."""
        return max((one.action for one in self.results), key=lambda one: one.rank, default=Action.NONE)

    @property
    def reason(self) -> str:
        """For the scheduler: `rackwright-health: gpu-count FAIL reboot: nvidia-smi lists 7 of 8 ...`."""
        checks = ",".join(dict.fromkeys(one.check for one in self.results)) or "nothing"
        if len(checks) > 80:
            checks = checks[:80].rpartition(",")[0] + ",..."
        status = "FAIL" if self.outcome is Outcome.BAD else "UNKNOWN"
        evidence = self.results[0].evidence if self.results else "no check ran"
        return printable(f"{HEALTH_PREFIX}{checks} {status} {self.action.value}: {evidence}")


def printable(text: str) -> str:
    """One short line that a workload manager's tools can print without losing their columns."""
    line = " ".join(text.split()).replace("|", "/").replace('"', "").replace("'", "").replace("\\", "/")
    return "".join(char for char in line if char.isprintable() and ord(char) < 128)[:REASON_MAX_CHARACTERS]


def found_in(results: Sequence[HealthResult]) -> Found:
    """What the results mean for jobs: those of checks that never drain mean nothing."""
    bad = [one for one in results if one.status is Status.FAIL and one.action.rank >= Action.DRAIN.rank]
    if bad:
        ranked = sorted(bad, key=lambda one: -one.action.rank)
        return Found(Outcome.BAD, tuple(ranked))
    unknown = [one for one in results if one.status is Status.UNKNOWN and may_drain(one)]
    if unknown or not results:
        return Found(Outcome.UNKNOWN, tuple(unknown))
    return Found(Outcome.CLEAN)


def may_drain(result: HealthResult) -> bool:
    """Whether a failure of this check would take the node out of service; an unknown check may."""
    return _ACTIONS.get(result.check, Action.DRAIN).rank >= Action.DRAIN.rank


class GuardAction(Enum):
    """What is done."""

    KEEP = "keep"
    DRAIN = "drain"
    REASON = "reason"
    """Drained by us already; only the reason is renewed."""
    RESUME = "resume"
    REBOOT = "reboot"


@dataclass(frozen=True)
class Decision:
    """What is done, what is remembered, and why."""

    action: GuardAction
    memory: Memory
    why: str
    reason: str = ""
    past_share: bool = False
    """Not drained although it should be: too many nodes are."""


def excused(memory: Memory, node: NodeState, now: float) -> Memory:
    """The memory once a node that we drained was resumed by an operator, who has seen why."""
    if not memory.drained or node.drained or node.down:
        return memory
    return replace(memory, drained=False, excused_until=now, alert=None)


def counted(memory: Memory, found: Found) -> Memory:
    """The memory after one more pass of the scheduler's health check."""
    return replace(
        memory,
        clean=memory.clean + 1 if found.outcome is Outcome.CLEAN else 0,
        unknown=memory.unknown + 1 if found.outcome is Outcome.UNKNOWN else 0,
    )


def condemned(policy: Policy, memory: Memory, found: Found) -> bool:
    """Whether jobs must be kept away from the node."""
    if found.outcome is Outcome.UNKNOWN:
        return policy.unknown == "drain" and memory.unknown >= policy.unknown_passes
    return found.outcome is Outcome.BAD


def concerns_manager(policy: Policy, memory: Memory, found: Found) -> bool:
    """Whether the workload manager has to be asked at all: a healthy fleet sends it nothing.

    The last clean pass of a row asks too: memory may have been lost while the node was drained.
    """
    row_ends = found.outcome is Outcome.CLEAN and memory.clean == policy.clean_passes
    return condemned(policy, memory, found) or memory.drained or row_ends


def decide(
    policy: Policy, memory: Memory, found: Found, node: NodeState, shares: Sequence[DrainShare], now: float
) -> Decision:
    """What to do about this node. `memory` has counted this pass; `shares` are its groups'."""
    if node.drained and not node.drained_by_health:
        left = replace(memory, drained=False, alert=None)
        return Decision(
            GuardAction.KEEP, left, f"not ours: {node.reason or 'no reason'} [{node.by or 'unknown user'}]"
        )
    if condemned(policy, memory, found):
        return _against(policy, memory, found, node, shares, now)
    calm = replace(memory, drained=node.drained_by_health, alert=None)
    if not node.drained_by_health:
        return Decision(GuardAction.KEEP, calm, "in service")
    if found.outcome is Outcome.CLEAN and memory.clean >= policy.clean_passes:
        why = f"{memory.clean} clean passes"
        return Decision(GuardAction.RESUME, replace(calm, drained=False), why)
    return Decision(GuardAction.KEEP, calm, f"{memory.clean} of {policy.clean_passes} clean passes")


def _against(
    policy: Policy, memory: Memory, found: Found, node: NodeState, shares: Sequence[DrainShare], now: float
) -> Decision:
    """A condemned node that is ours or in service."""
    if node.drained_by_health:
        return _drained(policy, replace(memory, drained=True, alert=None), found, node, now)
    if node.down:
        return Decision(GuardAction.KEEP, replace(memory, alert=None), "down already")
    full = [share for share in shares if share.drained + 1 > share.allowed(policy.drain_percent)]
    if full:
        full_groups = "; ".join(
            f"{share.drained} of {share.nodes} nodes of {share.group} are drained by health checks, "
            f"{share.allowed(policy.drain_percent)} may be"
            for share in full
        )
        alert = f"not drained: {full_groups}; {found.reason[len(HEALTH_PREFIX) :]}"
        return Decision(GuardAction.KEEP, replace(memory, alert=alert), alert, past_share=True)
    return Decision(GuardAction.DRAIN, replace(memory, drained=True, alert=None), found.reason, found.reason)


def _drained(policy: Policy, memory: Memory, found: Found, node: NodeState, now: float) -> Decision:
    """A condemned node that we have drained before: rebooted where that helps, its reason kept true."""
    if found.action is Action.REBOOT and found.outcome is Outcome.BAD and policy.reboots_a_day:
        recent = tuple(at for at in memory.reboots if now - at < DAY_SECONDS)
        if len(recent) >= policy.reboots_a_day:
            alert = f"{len(recent)} reboots in 24 h did not help: {found.reason[len(HEALTH_PREFIX) :]}"
            return Decision(GuardAction.KEEP, replace(memory, reboots=recent, alert=alert), alert)
        if not node.busy and not node.rebooting:
            booted = replace(memory, reboots=(*recent, now))
            return Decision(
                GuardAction.REBOOT,
                booted,
                f"reboot {len(recent) + 1} of {policy.reboots_a_day} a day",
                found.reason,
            )
    if found.outcome is Outcome.BAD and _checks(node.reason) != _checks(found.reason):
        return Decision(GuardAction.REASON, memory, found.reason, found.reason)
    return Decision(GuardAction.KEEP, memory, "drained by us already")


def _checks(reason: str) -> str:
    """What a reason is about; numbers in its evidence may change from pass to pass."""
    return reason[len(HEALTH_PREFIX) :].partition(":")[0]
