"""The stages of accept: five replaceable callables, and the result of a stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from rackwright.burnin.report import BurninReport
from rackwright.engine.run import Applied
from rackwright.model.cluster import Cluster
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import PlanResult, changes_text
from rackwright.status import Status
from rackwright.storage.report import BenchReport
from rackwright.verify.report import VerifyReport


class StageName(StrEnum):
    """The stages, in their order."""

    VALIDATE = "validate"
    APPLY = "apply"
    PLAN = "plan again"
    VERIFY = "verify"
    STORAGE = "storage"
    BURNIN = "burn-in"


@dataclass(frozen=True)
class StageResult:
    """What one stage came to."""

    name: StageName
    status: Status
    summary: str
    """One line."""
    details: tuple[str, ...] = ()
    """One sentence for each thing that is not as it must be."""
    seconds: float = 0.0
    ends: bool = False
    """Whether the run stops here although nothing failed: declined, or interrupted."""


@dataclass(frozen=True)
class Stages:
    """The work of each stage; rackwright.cli.accept_view has the one that works on the nodes."""

    apply: Callable[[Cluster], Applied]
    """Plans, has the plan agreed to and applies it."""
    plan: Callable[[Cluster], PlanResult]
    verify: Callable[[Cluster], VerifyReport]
    storage: Callable[[Cluster], BenchReport]
    """Run only where a filesystem is declared that nodes which run jobs use."""
    burnin: Callable[[Cluster], BurninReport]


def judge_applied(applied: Applied) -> StageResult:
    """FAIL: a node could not be planned or applied; UNKNOWN: unreachable, interrupted or declined."""
    planned = _plan_troubles(applied.plan)
    result = applied.result
    if result is None:
        if applied.plan.changes:
            said = f"the plan of {applied.plan.changes} changes was declined"
            return StageResult(StageName.APPLY, Status.UNKNOWN, said, (said, *_texts(planned)), ends=True)
        return _stage(StageName.APPLY, "nothing to change", [*planned, *_reboots(applied.plan.reboots)])
    troubles = {node: (status, text) for node, status, text in planned}
    for outcome in result.failed:
        status = Status.UNKNOWN if outcome.unreachable else Status.FAIL
        troubles[outcome.node] = (status, f"{outcome.node}: {outcome.error or 'failed without a reason'}")
    troubles |= {node: (status, text) for node, status, text in _reboots(result.reboots)}
    if result.interrupted:
        troubles[""] = (Status.UNKNOWN, "the apply was interrupted")
    done = sum(outcome.changed for outcome in result.nodes.values())
    nodes = sum(outcome.as_declared for outcome in result.nodes.values())
    summary = f"{done} changes made, {nodes} of {len(applied.plan.nodes)} nodes as declared"
    stage = _stage(StageName.APPLY, summary, [(node, *found) for node, found in troubles.items()])
    return replace(stage, ends=result.interrupted)


def judge_second_plan(plan: PlanResult) -> StageResult:
    """FAIL when something would still change: what was applied does not hold, or is not idempotent."""
    troubles = [*_plan_troubles(plan), *_reboots(plan.reboots)]
    for node in plan.nodes.values():
        for operation in node.operations:
            said = f"{node.node}: {operation.role}: {operation.name} would change again"
            troubles.append((node.node, Status.FAIL, said))
    summary = f"{plan.changes} changes left" if plan.changes else "nothing left to change"
    return _stage(StageName.PLAN, summary, troubles)


def judge_verified(report: VerifyReport) -> StageResult:
    """The report's own status."""
    said = tuple(
        f"{result.node}: {result.role}: {result.check}: {result.status.value}: {result.evidence}"
        for result in report.results
        if result.status in (Status.FAIL, Status.UNKNOWN)
    )
    return StageResult(StageName.VERIFY, report.status, report.verdict.removeprefix("verify: "), said)


def judge_benched(report: BenchReport) -> StageResult:
    """The report's own status."""
    said = tuple(
        f"{finding.status.value}: {finding.text}"
        for result in report.results
        for finding in result.findings
        if finding.status is not Status.OUT_OF_SCOPE
    )
    return StageResult(StageName.STORAGE, report.status, report.verdict.removeprefix("storage bench: "), said)


def judge_burnt_in(report: BurninReport) -> StageResult:
    """The report's own status."""
    said = tuple(
        f"{finding.status.value}: {finding.text}"
        for group in report.groups
        for finding in group.all_findings
        if finding.status is not Status.OUT_OF_SCOPE
    )
    return StageResult(StageName.BURNIN, report.status, report.verdict.removeprefix("burnin: "), said)


def _plan_troubles(plan: PlanResult) -> list[tuple[str, Status, str]]:
    return [
        (
            node.node,
            Status.UNKNOWN if node.unreachable else Status.FAIL,
            f"{node.node}: {node.error or 'cannot be planned'}",
        )
        for node in plan.failed
    ]


def _reboots(due: Mapping[str, tuple[Change, ...]]) -> list[tuple[str, Status, str]]:
    return [(node, Status.FAIL, f"{node}: a reboot is due: {changes_text(due[node])}") for node in due]


def _texts(troubles: list[tuple[str, Status, str]]) -> tuple[str, ...]:
    return tuple(text for _, _, text in troubles)


def _stage(name: StageName, summary: str, troubles: list[tuple[str, Status, str]]) -> StageResult:
    statuses = {status for _, status, _ in troubles}
    status = next((worse for worse in (Status.FAIL, Status.UNKNOWN) if worse in statuses), Status.PASS)
    return StageResult(name, status, summary, _texts(troubles))
