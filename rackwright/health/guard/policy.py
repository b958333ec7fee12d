"""Decides whether to drain, resume, reboot or leave this node, as one pure function.

Rules, each with the failure it prevents:

- A site that has not seen the verdicts yet only observes (`act: false`): nothing is drained, rebooted or
  refused. An earlier drain by the health check is still lifted, or switching over would leave the node stranded.
- A node that another user or tool took out of service is left alone, even if checks fail.
- A node is resumed only if the health check set its reason, and only after several clean passes in a row.
- UNKNOWN is not a pass: it ends a streak of clean passes. If it persists it raises an alert. It drains only if the
  site opts in, and only for a check that has passed on this node before: a driver that does not print a field, or
  a tool that was never installed, must not drain a healthy fleet.
- No more than a share of each group of nodes (Slurm: a partition; Kubernetes: a SKU, or a label) is ever drained by health checks.
  Beyond that the checks are more likely wrong than the nodes, and an alert is raised instead.
- A node is rebooted only if the health check drained it and it is empty, a few times a day at most.
- An operator who resumes a node drained by the health check has seen the reason: kernel errors before that time
  no longer count against it. A fault that persists drains it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from rackwright.health.guard.found import Found, Outcome
from rackwright.health.guard.memory import Memory, Policy, lasting
from rackwright.health.verdict import Action
from rackwright.workload.states import HEALTH_PREFIX, DrainShare, NodeState

DAY_SECONDS = 86400.0
UNKNOWN_FOR = "UNKNOWN in "
"""Prefix of an alert about unknown results."""


class GuardAction(Enum):
    """The action."""

    KEEP = "keep"
    DRAIN = "drain"
    REASON = "reason"
    """Already drained by the health check; only the reason is updated."""
    RESUME = "resume"
    REBOOT = "reboot"


@dataclass(frozen=True)
class Decision:
    """The action, the new memory, and the reason."""

    action: GuardAction
    memory: Memory
    why: str
    reason: str = ""
    past_share: bool = False
    """The node should be drained but is not, because too many nodes are."""


def against(policy: Policy, memory: Memory, found: Found) -> Found | None:
    """What keeps jobs off the node if the site acts on it; None for a healthy node."""
    if found.outcome is Outcome.BAD:
        return found
    if policy.unknown == "drain":
        results = tuple(one for one in lasting(policy, memory, found).results if one.check in memory.passed)
        if results:
            return Found(Outcome.UNKNOWN, results)
    return None


def unknown_alert(policy: Policy, memory: Memory, found: Found) -> str | None:
    """What an operator has to look at because it was UNKNOWN for several passes."""
    unknown = lasting(policy, memory, found)
    if unknown.outcome is not Outcome.UNKNOWN:
        return None
    return f"{UNKNOWN_FOR}{policy.unknown_passes} passes in a row: {unknown.listed}: {unknown.evidence}"


def topic(alert: str | None) -> str | None:
    """The subject of an alert; the rest may change from pass to pass."""
    return alert.partition(":")[0] if alert is not None else None


def concerns_manager(policy: Policy, memory: Memory, found: Found) -> bool:
    """Whether to query the workload manager at all: a healthy fleet sends it no requests.

    A streak of clean passes queries it once too, in case the memory was lost while the node was drained.
    """
    lost = found.outcome is Outcome.CLEAN and memory.clean >= policy.clean_passes and not memory.confirmed
    return (policy.act and against(policy, memory, found) is not None) or memory.drained or lost


def not_asked(policy: Policy, memory: Memory, found: Found) -> Decision:
    """The decision when the workload manager need not be queried."""
    bad = against(policy, memory, found)
    why = f"would drain: {bad.reason}" if bad is not None else found.outcome.value
    return Decision(GuardAction.KEEP, replace(memory, alert=None), why)


def decide(
    policy: Policy, memory: Memory, found: Found, node: NodeState, shares: Sequence[DrainShare], now: float
) -> Decision:
    """Decide what to do with this node. `memory` includes this pass; `shares` are those of its groups."""
    memory = replace(memory, confirmed=True)
    if node.drained and not node.drained_by_health:
        left = replace(memory, drained=False, alert=None)
        return Decision(
            GuardAction.KEEP,
            left,
            f"drained by others: {node.reason or 'no reason'} [{node.by or 'unknown user'}]",
        )
    bad = against(policy, memory, found)
    if bad is not None and policy.act:
        return _against(policy, memory, bad, node, shares, now)
    calm = replace(memory, drained=node.drained_by_health, alert=None)
    if bad is not None:
        return Decision(GuardAction.KEEP, calm, f"would drain: {bad.reason}")
    if not node.drained_by_health:
        return Decision(GuardAction.KEEP, calm, "in service")
    if found.outcome is Outcome.CLEAN and memory.clean >= policy.clean_passes:
        why = f"{memory.clean} clean passes"
        return Decision(GuardAction.RESUME, replace(calm, drained=False), why)
    return Decision(GuardAction.KEEP, calm, f"{memory.clean} of {policy.clean_passes} clean passes")


def _against(
    policy: Policy, memory: Memory, found: Found, node: NodeState, shares: Sequence[DrainShare], now: float
) -> Decision:
    """Decide for a failed node that is in service or drained by the health check."""
    if node.drained_by_health:
        return _drained(policy, replace(memory, drained=True, alert=None), found, node, now)
    if node.down:
        return Decision(GuardAction.KEEP, replace(memory, alert=None), "already down")
    full = [share for share in shares if share.drained + 1 > share.allowed(policy.drain_percent)]
    if full:
        full_groups = "; ".join(
            f"{share.drained} of {share.nodes} nodes of {share.group} are already drained by health checks, at most "
            f"{share.allowed(policy.drain_percent)} may be"
            for share in full
        )
        alert = f"not drained: {full_groups}; {found.reason[len(HEALTH_PREFIX) :]}"
        return Decision(GuardAction.KEEP, replace(memory, alert=alert), alert, past_share=True)
    return Decision(GuardAction.DRAIN, replace(memory, drained=True, alert=None), found.reason, found.reason)


def _drained(policy: Policy, memory: Memory, found: Found, node: NodeState, now: float) -> Decision:
    """Decide for a failed node that the health check drained: reboot it if that may help, and update its reason."""
    if found.action is Action.REBOOT and found.outcome is Outcome.BAD and policy.reboots_a_day:
        recent = tuple(at for at in memory.reboots if now - at < DAY_SECONDS)
        if len(recent) >= policy.reboots_a_day:
            alert = f"{len(recent)} reboots within 24 h did not help: {found.reason[len(HEALTH_PREFIX) :]}"
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
    return Decision(GuardAction.KEEP, memory, "already drained by the health check")


def _checks(reason: str) -> str:
    """The subject of a reason; numbers in its evidence may change from pass to pass."""
    return reason[len(HEALTH_PREFIX) :].partition(":")[0]
