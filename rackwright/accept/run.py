"""Runs the stages in order; a failed stage ends the run."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from rackwright import __version__
from rackwright.accept.report import AcceptReport
from rackwright.accept.stages import (
    StageName,
    StageResult,
    Stages,
    judge_applied,
    judge_benched,
    judge_burnt_in,
    judge_second_plan,
    judge_verified,
)
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.plan.node_plan import PlanResult
from rackwright.status import Status
from rackwright.storage.plan import is_benched

Found = TypeVar("Found")
Progress = Callable[[StageName, StageResult | None], None]
"""Called with None when a stage begins and with its result when it ends."""


def accept(
    cluster: Cluster, stages: Stages, *, progress: Progress = lambda name, result: None
) -> AcceptReport:
    """Apply, plan again, verify, measure storage and burn in a cluster whose file is valid; judge the whole.

    A stage that fails ends the run: what comes after it is UNKNOWN, "not run". A stage that is
    UNKNOWN does not: the other nodes are worth knowing about. Errors before anything was changed
    (another run holds the lock, secrets that cannot be read) are raised.
    """
    return _Run(cluster, stages, progress).report()


class _Run:
    def __init__(self, cluster: Cluster, stages: Stages, progress: Progress) -> None:
        self._cluster = cluster
        self._stages = stages
        self._progress = progress
        self._results: list[StageResult] = []

    def report(self) -> AcceptReport:
        started, begun = datetime.now(UTC), time.monotonic()
        cluster, stages = self._cluster, self._stages
        valid = f"{cluster.path.name} is valid: {len(cluster.nodes)} nodes"
        self._note(StageResult(StageName.VALIDATE, Status.PASS, valid))
        applied = self._stage(StageName.APPLY, stages.apply, judge_applied, raises=True)
        second: PlanResult | None = None
        if applied is not None and all(node.as_declared for node in applied.plan.nodes.values()):
            self._note(StageResult(StageName.PLAN, Status.PASS, "the plan was already empty"))
        else:
            second = self._stage(StageName.PLAN, stages.plan, judge_second_plan)
        verified = self._stage(StageName.VERIFY, stages.verify, judge_verified)
        benched = None
        if is_benched(cluster):
            benched = self._stage(StageName.STORAGE, stages.storage, judge_benched)
        burnt_in = self._stage(StageName.BURNIN, stages.burnin, judge_burnt_in)
        versions = {"rackwright": __version__, "python": platform.python_version()}
        for group in burnt_in.groups if burnt_in is not None else ():
            versions |= group.versions
        for result in benched.results if benched is not None else ():
            versions |= result.versions
        return AcceptReport(
            cluster=cluster.name,
            file=str(cluster.path),
            sha256=cluster.sha256,
            nodes=tuple(node.name for node in cluster.nodes),
            started=started,
            seconds=time.monotonic() - begun,
            stages=tuple(self._results),
            versions=versions,
            applied=applied,
            second_plan=second,
            verified=verified,
            benched=benched,
            burnt_in=burnt_in,
            simulated=tuple(node.name for node in cluster.nodes if node.simulates_gpus),
        )

    def _stage(
        self,
        name: StageName,
        work: Callable[[Cluster], Found],
        judge: Callable[[Found], StageResult],
        *,
        raises: bool = False,
    ) -> Found | None:
        """Run a stage unless one before it failed; None when it was not run or came to nothing."""
        ended = next((done for done in self._results if done.status is Status.FAIL or done.ends), None)
        if ended is not None:
            reason = "failed" if ended.status is Status.FAIL else "did not take place"
            said = f"not run, because {ended.name.value} {reason}"
            self._note(StageResult(name, Status.UNKNOWN, said, (said,)))
            return None
        self._progress(name, None)
        begun = time.monotonic()
        try:
            found = work(self._cluster)
        except RackwrightError as error:
            if raises:
                raise
            self._note(
                StageResult(name, Status.UNKNOWN, error.message, (error.message,), time.monotonic() - begun)
            )
            return None
        self._note(replace(judge(found), seconds=time.monotonic() - begun))
        return found

    def _note(self, result: StageResult) -> None:
        self._results.append(result)
        self._progress(result.name, result)
