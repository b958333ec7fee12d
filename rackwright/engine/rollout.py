"""Carries out a plan in waves: drain, apply, reboot if requested, resume, judge, continue or stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

from rackwright.engine.boots import Boots
from rackwright.engine.journal import Journal
from rackwright.engine.reboots import Asked, Reboots
from rackwright.engine.run_lock import who
from rackwright.engine.session import Session
from rackwright.engine.waves import must_stop, plan_waves
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.model.settings import Waves
from rackwright.model.types import NodeRole
from rackwright.plan.node_plan import ApplyResult, NodeOutcome, PlanResult
from rackwright.silences.silencer import Silencer
from rackwright.ssh import Pool
from rackwright.workload.lookup import manager_of
from rackwright.workload.protocol import Manager
from rackwright.workload.several import forget_moved


class Rollout:
    """One plan being carried out; outcomes gather in file order."""

    def __init__(
        self,
        session: Session,
        cluster: Cluster,
        plan: PlanResult,
        policy: Waves,
        journal: Journal,
        *,
        confirm: Callable[[], None] = lambda: None,
        notice: Callable[[str], None] = lambda text: None,
        reboots: Asked | None = None,
    ) -> None:
        """`confirm` returns once it is known whether this run still holds its lock; `notice` receives a sentence while it
        runs; `reboots`: None: no reboots.
        """
        self._asked = reboots
        self._reboots: Reboots | None = None
        self._confirm = confirm
        self._notice = notice
        self._session = session
        self._cluster = cluster
        self._plan = plan
        self._policy = policy
        self._journal = journal
        self._outcomes = {
            name: NodeOutcome(
                name, node.error is None, error=node.error, unreachable=node.unreachable, reboot=node.reboot
            )
            for name, node in plan.nodes.items()
        }
        self._failed_reboot: str | None = None
        self.left_drained: set[str] = set()
        """Nodes that this run drained, or may have drained, and has not resumed."""
        self.stopped: str | None = None
        """Why waves were not started."""
        self.notes: list[str] = []
        """Nodes that were not rebooted, and why."""

    def run(self) -> ApplyResult:
        """Wave after wave until all are done, the policy stops them, or Ctrl-C does."""
        due = [
            self._cluster.by_name[name]
            for name, node in self._plan.nodes.items()
            if node.error is None and (node.changes or (node.reboot and self._asked is not None))
        ]
        waves = plan_waves(due, self._policy, heads_alone=self._asked is not None)
        with Pool(self._cluster) as pool:
            manager = manager_of(self._cluster, pool)
            self._silencer = Silencer(self._cluster, pool, _comment(self._journal.run), self._notice)
            if self._asked is not None:
                self._reboots = Reboots(
                    self._cluster,
                    self._asked,
                    Boots(self._cluster, pool, self._asked.boot_timeout_seconds),
                    self._session,
                    self._journal,
                    forget=pool.forget,
                )
                self.notes = self._reboots.notes
            for number, wave in enumerate(waves):
                done = [self._outcomes[name].ok for one in waves[:number] for name in one]
                why = self._broken_off() or self._failed_reboot or must_stop(self._policy, done)
                if why is None and number:
                    time.sleep(self._policy.pause_seconds)
                if why is None:
                    self._journal.step("wave", number=number + 1, of=len(waves), nodes=list(wave))
                    why = self._broken_off()
                if why is not None:
                    self.stopped = why
                    self._leave(waves[number:], why)
                    break
                with self._silencer.around(wave):
                    self._wave(wave, manager)
        result = ApplyResult(self._plan.cluster, self._outcomes, self._session.interrupted)
        self._journal.write("result", exit_status=int(result.exit_code))
        return result

    def _broken_off(self) -> str | None:
        """Why nothing more may start, independent of the results so far."""
        self._confirm()
        if self._session.interrupted:
            return "the run was interrupted"
        if self._session.stopped is not None:
            return f"the run lost its lock: {self._session.stopped.rstrip('.')}"
        return self._journal.failure

    def _wave(self, wave: tuple[str, ...], manager: Manager | None) -> None:
        rebooted = self._reboots.planned(self._plan, wave) if self._reboots is not None else []
        drained: list[str] = []
        if manager is not None and (first := self._must_drain(wave, rebooted)):
            killing = rebooted if self._reboots is not None and self._reboots.kill_jobs else []
            if (gone := self._drain(manager, first, wave, killing)) is None:
                return
            drained, wave = gone, tuple(name for name in wave if name in gone or name not in first)
        changing = [name for name in wave if self._plan.nodes[name].changes]
        if changing:
            self._outcomes.update(self._session.apply(changing))
        if self._reboots is not None:
            drained += self._reboot(self._reboots, manager, wave, drained)
        if manager is not None:
            untouched = self._reboots.refused if self._reboots is not None else []
            good = [name for name in drained if self._outcomes[name].ok or name in untouched]
            self._resume(manager, good, as_declared=[name for name in good if name not in untouched])

    def _drain(
        self, manager: Manager, names: list[str], wave: Iterable[str], killing: Iterable[str] = ()
    ) -> list[str] | None:
        """Those of these nodes that may be changed now; None: the run is stopped, and no node of the wave is changed."""
        # journaled first, so that a later run knows what this one may have drained if it is killed
        self._journal.step("drain", nodes=names)
        if (why := self._broken_off()) is not None:
            self.stopped = why
            self._leave([wave], why)
            return None
        self.left_drained.update(names)
        refused: dict[str, str] = {}
        of_killing = [name for name in names if name in killing]
        for some, kill in ((of_killing, True), ([name for name in names if name not in killing], False)):
            if some:
                refused |= self._drained(manager, some, kill=kill)
        ready = [name for name in names if name not in refused]
        self._journal.step("drained", nodes=ready, refused=refused)
        self.left_drained.difference_update(refused)
        for name, why in refused.items():
            done = self._outcomes[name].operations
            self._outcomes[name] = NodeOutcome(name, False, done, error=f"{why}; it was not changed")
        if (why := self._broken_off()) is not None:  # while waiting for their jobs
            self.stopped = why
            self._leave([[name for name in wave if name not in refused]], why)
            self._resume(manager, ready)
            return None
        return ready

    def _drained(self, manager: Manager, names: list[str], *, kill: bool) -> dict[str, str]:
        seconds = self._policy.drain_deadline_seconds
        try:
            return manager.drain(names, self._journal.run, seconds, **({"kill_jobs": True} if kill else {}))
        except RackwrightError as error:
            return dict.fromkeys(names, f"it could not be drained: {error.message.rstrip('.')}")

    def _reboot(
        self, reboots: Reboots, manager: Manager | None, wave: Iterable[str], drained: list[str]
    ) -> list[str]:
        """Reboot what is due; these nodes had to be drained for it first."""
        due = [name for name in wave if self._outcomes[name].ok and self._outcomes[name].reboot]
        workers = [name for name in due if self._cluster.by_name[name].holds(NodeRole.WORKER)]
        late: list[str] = []
        if not due or self._broken_off() is not None:
            return late
        if manager is not None and (undrained := [name for name in workers if name not in drained]):
            if (gone := self._drain(manager, undrained, ())) is None:
                return late
            late = gone
        outcomes = {name: self._outcomes[name] for name in due if self._outcomes[name].ok}
        rebooted = reboots.carry_out(outcomes)
        self._silencer.expect_boots(rebooted)
        for name, outcome in rebooted.items():
            self._outcomes[name] = outcome
            data = {"ok": outcome.ok, "changed": outcome.changed, "error": outcome.error}
            self._journal.write("node", sync=True, node=name, **data)
        if reboots.failed:
            self._failed_reboot = f"{fold(reboots.failed)} did not come back after the reboot"
        return late

    def _resume(self, manager: Manager, good: list[str], *, as_declared: Collection[str] = ()) -> None:
        """Resume nodes. If that fails, they stay drained and failed; a later run that finds them as declared resumes them."""
        if not good:
            return
        try:
            forget_moved(manager, as_declared)
            resumed = list(manager.resume(good, self._journal.run))
        except RackwrightError as error:
            why = f"could not be resumed: {error.message}"
            for name in good:
                done = f"it is as declared, but {why}" if self._outcomes[name].ok else why
                self._outcomes[name] = NodeOutcome(name, False, error=done)
            return
        self.left_drained.difference_update(good)
        released = [
            name for name in good if name not in resumed
        ]  # drained by an operator, before or in the meantime
        for event, nodes in (("resume", resumed), ("released", released)):
            if nodes:
                self._journal.step(event, nodes=nodes)

    def _must_drain(self, wave: Iterable[str], rebooted: Iterable[str]) -> list[str]:
        """Workers of this wave that are rebooted, or have a disruptive change planned."""
        return [
            name
            for name in wave
            if self._cluster.by_name[name].holds(NodeRole.WORKER)
            and (name in rebooted or (self._policy.drain and self._is_disruptive(name)))
        ]

    def _is_disruptive(self, name: str) -> bool:
        return any(operation.disruptive for operation in self._plan.nodes[name].operations)

    def _leave(self, waves: Iterable[Iterable[str]], why: str) -> None:
        for name in (name for wave in waves for name in wave):
            self._outcomes[name] = NodeOutcome(name, False, error=f"not started: {why}")


def _comment(run: str) -> str:
    """Author of this run's silences in Alertmanager."""
    by = who()
    return f"rackwright run {run} of {by['user']}@{by['host']}"
