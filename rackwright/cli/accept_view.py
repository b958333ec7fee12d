"""An acceptance on a terminal: its stages while it runs, and the verdict."""

from __future__ import annotations

import typer
from rich.text import Text

from rackwright.accept import AcceptReport, Stages
from rackwright.accept.stages import StageName, StageResult
from rackwright.burnin import BurninReport, burnin
from rackwright.cli.burnin_view import show_burnin
from rackwright.cli.lines import say
from rackwright.cli.plan_view import show_outcome, show_plan
from rackwright.cli.progress import Progress, Waiting
from rackwright.cli.storage_view import show_bench
from rackwright.cli.terminal import STYLES, Console, wide_console
from rackwright.cli.verify_view import show_verify
from rackwright.drift.install import update_digests
from rackwright.durations import Durations
from rackwright.engine.former_runs import FormerRuns
from rackwright.engine.run import Applied, apply, plan
from rackwright.model.cluster import Cluster
from rackwright.plan.node_plan import PlanResult
from rackwright.status import Status
from rackwright.storage.report import BenchReport
from rackwright.storage.run import bench
from rackwright.verify import VerifyReport, verify


class Acceptance:
    """The stages of one cluster with their output on the terminal."""

    def __init__(self, cluster: Cluster, out: Console, *, yes: bool) -> None:
        self._cluster = cluster
        self._out = out
        self._yes = yes

    def stages(self) -> Stages:
        """The real stages, each showing its progress on stderr and its result on stdout."""
        return Stages(
            apply=self._apply,
            plan=self._plan,
            verify=self._verify,
            storage=self._storage,
            burnin=self._burnin,
        )

    def show_stage(self, name: StageName, result: StageResult | None) -> None:
        """One line when a stage has ended."""
        if result is not None:
            word = (f"{result.status.value:<8}", STYLES[result.status])
            self._out.print(Text.assemble(word, (f"{name.value}: ", "bold"), result.summary))

    def _apply(self, cluster: Cluster) -> Applied:
        progress = Progress(len(cluster.nodes), Console(stderr=True), FormerRuns(cluster.name))

        def agree(planned: PlanResult) -> bool:
            progress.pause()
            show_plan(planned, self._out, more=f"rackwright plan {cluster.path} -v")
            agreed = self._yes or typer.confirm(f"Apply {planned.changes} changes?", default=False)
            progress.resume()
            return agreed

        with progress:
            applied = apply(cluster, watch=progress, agree=agree)
            update_digests(cluster, applied)
        for note in applied.notes:
            say(note, err=True)
        if applied.result is not None:
            show_outcome(applied.result, self._out)
        return applied

    def _plan(self, cluster: Cluster) -> PlanResult:
        with Progress(len(cluster.nodes), Console(stderr=True)) as progress:
            planned = plan(cluster, watch=progress)
        if planned.changes or planned.failed:
            show_plan(planned, self._out, more=f"rackwright plan {cluster.path} -v")
        return planned

    def _verify(self, cluster: Cluster) -> VerifyReport:
        with Console(stderr=True).status("asking the nodes ..."):
            report = verify(cluster)
        if (problem := report.remember()) is not None:
            say(problem, err=True)
        show_verify(report, wide_console())
        return report

    def _storage(self, cluster: Cluster) -> BenchReport:
        with Waiting(Console(stderr=True), Durations(cluster.name, "storage-bench")) as waiting:
            report = bench(cluster, progress=waiting.step)
        show_bench(report, wide_console())
        return report

    def _burnin(self, cluster: Cluster) -> BurninReport:
        with Waiting(Console(stderr=True), Durations(cluster.name, "burnin")) as waiting:
            report = burnin(cluster, progress=waiting.step)
        show_burnin(report, wide_console())
        return report


def show_verdict(report: AcceptReport, out: Console) -> None:
    """The details of apply and plan, then the verdict."""
    for stage in report.stages:
        for detail in stage.details if stage.name in (StageName.APPLY, StageName.PLAN) else ():
            out.print(Text(f"  {stage.name.value}: {detail}", style=STYLES[stage.status]))
    style = {0: STYLES[Status.PASS], 3: STYLES[Status.FAIL]}.get(
        int(report.exit_code), STYLES[Status.UNKNOWN]
    )
    out.print(Text(report.line, style=f"bold {style}"))
