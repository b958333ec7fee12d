"""Reboots as part of a wave: once, a new boot awaited, what waited for it applied, all checks passed or left drained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from rackwright.engine.boots import Boots
from rackwright.engine.journal import Journal
from rackwright.engine.session import Session
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.plan.node_plan import NodeOutcome, PlanResult, changes_text
from rackwright.workload.lookup import manager_of, runs_jobs
from rackwright.workload.protocol import Job

ROUNDS = 2
"""Applies after a reboot; what the last of them leaves to change does not come about by itself."""
_SHOWN = 3

Verified = Callable[[Cluster, Iterable[str]], Mapping[str, str | None]]
"""Why each of these nodes does not pass its checks; None: it passes."""


@dataclass(frozen=True)
class Asked:
    """How a run may reboot nodes."""

    boot_timeout_seconds: int
    kill_jobs: bool = False
    """Jobs of nodes whose reboot was shown and agreed to are cancelled."""
    whether_due_or_not: bool = False
    """`rackwright reboot`: all of its nodes, and nothing is applied to them."""


def not_passed(cluster: Cluster, names: Iterable[str]) -> dict[str, str | None]:
    """Run the checks that the roles of these nodes make of a node; what fails, and what is not known, does not pass.

    Checks that run a job there are left out: the nodes are drained.
    """
    from rackwright.status import Status  # verify loads pyinfra's facts: not for runs that reboot nothing
    from rackwright.verify.runner import verify
    from rackwright.verify.selection import load_checks

    names = list(names)
    checked = [name for name in names if cluster.by_name[name].options]
    if not checked:
        return dict.fromkeys(names)  # nothing is declared of them
    report = verify(
        cluster,
        limit=fold(checked),
        drained=True,
        checks_of=lambda role: tuple(
            check for check in load_checks(role) if check.scope == "node" and not check.in_service
        ),
    )
    bad: dict[str, list[str]] = {name: [] for name in names}
    seen: set[str] = set()
    for result in report.results:
        seen.add(result.node)
        if result.status in (Status.FAIL, Status.UNKNOWN):
            bad[result.node].append(
                f"{result.role}: {result.check}: {result.status.value}: {result.evidence}"
            )
    found: dict[str, str | None] = {}
    for name, texts in bad.items():
        more = f"; and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
        none = "none of its roles makes a check of it" if name in checked and name not in seen else None
        found[name] = "; ".join(texts[:_SHOWN]) + more if texts else none
    return found


def jobs_on(cluster: Cluster, names: Iterable[str]) -> dict[str, tuple[Job, ...]]:
    """What runs on these nodes now, nodes without jobs left out; raises where the workload manager does not answer."""
    from rackwright.ssh import Pool

    workers = [name for name in names if runs_jobs(cluster.by_name[name])]
    with Pool(cluster) as pool:
        manager = manager_of(cluster, pool)
        if manager is None or not workers:
            return {}
        found = {name: manager.jobs(name) for name in workers}
    return {name: jobs for name, jobs in found.items() if jobs}


class Reboots:
    """The reboots of one run's waves."""

    def __init__(
        self,
        cluster: Cluster,
        asked: Asked,
        boots: Boots,
        session: Session,
        journal: Journal,
        *,
        forget: Callable[[str], None] = lambda node: None,
        verified: Verified = not_passed,
    ) -> None:
        """`forget`: drop kept connections to a node, which do not live through its reboot."""
        self._cluster = cluster
        self._asked = asked
        self._boots = boots
        self._session = session
        self._journal = journal
        self._forget = forget
        self._verified = verified
        self.notes: list[str] = []
        """Why nodes were not rebooted."""
        self.refused: list[str] = []
        """Nodes with a requested reboot that were not changed."""
        self.failed: list[str] = []
        """Nodes that were, and did not return, or are not as declared or do not pass their checks after it."""

    @property
    def kill_jobs(self) -> bool:
        """Whether jobs of nodes that the plan reboots are cancelled."""
        return self._asked.kill_jobs

    def planned(self, plan: PlanResult, names: Iterable[str]) -> list[str]:
        """Those of these nodes that the plan reboots and that may be rebooted, as far as known before a drain."""
        due = [name for name in names if plan.nodes[name].reboot]
        before = self._boots.before(due) if due else {}
        return [name for name in due if before[name].never is None]

    def carry_out(self, outcomes: Mapping[str, NodeOutcome]) -> dict[str, NodeOutcome]:
        """Reboot the nodes of these outcomes whose reboot is due; what then became of them.

        A node that may not be rebooted keeps its outcome, with the reboot still due, and is named in the notes.
        """
        due = {name: outcome for name, outcome in outcomes.items() if outcome.ok and outcome.reboot}
        found: dict[str, NodeOutcome] = {}
        boots: dict[str, str] = {}
        for name, before in self._boots.before(due).items():
            if before.why_not is None:
                boots[name] = before.boot
            elif self._asked.whether_due_or_not:
                why = f"not rebooted: {before.why_not}; it was not changed"
                found[name] = replace(due[name], ok=False, reboot=(), error=why)
                self.refused.append(name)
            else:
                self.notes.append(f"{name}: not rebooted: {before.why_not}.")
        if boots:
            self._journal.step("reboot", nodes=list(boots))
            found |= self._rebooted(boots, due)
        return found

    def _rebooted(self, boots: dict[str, str], due: Mapping[str, NodeOutcome]) -> dict[str, NodeOutcome]:
        found: dict[str, NodeOutcome] = {}
        up = []
        for name, problem in self._boots.reboot(boots).items():
            self._forget(name)
            if problem is None:
                up.append(name)
            else:
                found[name] = replace(
                    due[name], ok=False, reboot=(), error=f"reboot: {problem}", unreachable=problem.gone
                )
        self._journal.step("rebooted", nodes=up, failed={name: str(one.error) for name, one in found.items()})
        applied = {name: replace(due[name], reboot=()) for name in up}
        if up and not self._asked.whether_due_or_not:
            applied |= self._apply_again(applied)
        good = [name for name, outcome in applied.items() if outcome.ok]
        failed: dict[str, str] = {}
        for name, why in (self._verified(self._cluster, good) if good else {}).items():
            if why is not None:
                failed[name] = why
                applied[name] = replace(
                    applied[name], ok=False, error=f"it did not pass after its reboot: {why}"
                )
        passed = [name for name in good if name not in failed]
        self._journal.step("verified", nodes=passed, failed=failed)
        self.failed += [*found, *(name for name, outcome in applied.items() if not outcome.ok)]
        return found | applied

    def _apply_again(self, outcomes: Mapping[str, NodeOutcome]) -> dict[str, NodeOutcome]:
        """Plan again, and apply what waited for the reboot."""
        found = dict(outcomes)
        left = list(outcomes)
        for last in (*(False for _ in range(ROUNDS)), True):
            with self._session.again(left) as session:
                planned = session.plan()
                for name in left:
                    if (why := _problem(planned, name, last=last)) is not None:
                        lost = planned.nodes[name].unreachable
                        found[name] = replace(found[name], ok=False, error=why, unreachable=lost)
                due = [name for name in left if found[name].ok and planned.nodes[name].changes]
                done = session.apply(due) if due else {}
            for name, outcome in done.items():
                before = found[name]
                found[name] = replace(
                    outcome,
                    operations=(*before.operations, *outcome.operations),
                    seconds=before.seconds + outcome.seconds,
                )
            left = [name for name in due if found[name].ok]
            if not left:
                break
        return found


def _problem(planned: PlanResult, name: str, *, last: bool) -> str | None:
    """Why a node that was rebooted is not as it should be, by its plan; None: go on."""
    plan = planned.nodes[name]
    if plan.error is not None:
        return f"it was rebooted and cannot be planned: {plan.error}"
    if plan.reboot:
        return f"it was rebooted, and a reboot is due again: {changes_text(plan.reboot)}"
    if last and plan.operations:
        names = ", ".join(f"{operation.role}: {operation.name}" for operation in plan.operations[:_SHOWN])
        return f"it was rebooted, and after {ROUNDS} applies something is still to be changed: {names}"
    return None
