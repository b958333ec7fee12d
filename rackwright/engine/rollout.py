"""Carrying out a plan wave by wave: drain, apply, resume, judge, go on or stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from rackwright.engine.journal import Journal
from rackwright.engine.session import Session
from rackwright.engine.waves import must_stop, plan_waves
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.settings import Waves
from rackwright.model.types import NodeRole
from rackwright.plan.node_plan import ApplyResult, NodeOutcome, PlanResult
from rackwright.ssh import Pool
from rackwright.workload.lookup import manager_of
from rackwright.workload.protocol import Manager


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
    ) -> None:
        """`confirm` returns once it is known whether this run still has its lock."""
        self._confirm = confirm
        self._session = session
        self._cluster = cluster
        self._plan = plan
        self._policy = policy
        self._journal = journal
        self._outcomes = {
            name: NodeOutcome(name, node.error is None, error=node.error, unreachable=node.unreachable)
            for name, node in plan.nodes.items()
        }
        self.left_drained: set[str] = set()
        """Nodes that this run took out of service, or may have, and has not put back."""
        self.stopped: str | None = None
        """Why waves were not begun."""

    def run(self) -> ApplyResult:
        """Wave after wave until all are done, the policy says stop, or Ctrl-C does."""
        due = [
            self._cluster.by_name[name]
            for name, node in self._plan.nodes.items()
            if node.error is None and node.changes
        ]
        waves = plan_waves(due, self._policy)
        with Pool(self._cluster) as pool:
            manager = manager_of(self._cluster, pool)
            for number, wave in enumerate(waves):
                done = [self._outcomes[name].ok for one in waves[:number] for name in one]
                why = self._broken_off() or must_stop(self._policy, done)
                if why is None and number:
                    time.sleep(self._policy.pause_seconds)
                if why is None:
                    self._journal.write("wave", sync=True, number=number + 1, of=len(waves), nodes=list(wave))
                    why = self._broken_off()
                if why is not None:
                    self.stopped = why
                    self._leave(waves[number:], why)
                    break
                self._wave(wave, manager)
        return ApplyResult(self._plan.cluster, self._outcomes, self._session.interrupted)

    def _broken_off(self) -> str | None:
        """Why nothing more may be begun, whatever became of the nodes so far."""
        self._confirm()
        if self._session.interrupted:
            return "the run was interrupted"
        if self._session.stopped is not None:
            return f"the run lost its lock: {self._session.stopped.rstrip('.')}"
        return self._journal.failure

    def _wave(self, wave: tuple[str, ...], manager: Manager | None) -> None:
        if manager is None or not (drained := self._must_drain(wave)):
            self._outcomes.update(self._session.apply(list(wave)))
            return
        # journaled first, so that a later run knows what this one may have drained before it was killed
        self._journal.write("drain", sync=True, nodes=drained)
        if (why := self._broken_off()) is not None:
            self.stopped = why
            self._leave([wave], why)
            return
        self.left_drained.update(drained)
        try:
            refused = manager.drain(drained, self._journal.run, self._policy.drain_deadline_seconds)
        except RackwrightError as error:
            refused = dict.fromkeys(drained, f"it could not be drained: {error.message.rstrip('.')}")
        names = [name for name in drained if name not in refused]
        self._journal.write("drained", sync=True, nodes=names, refused=refused)
        self.left_drained.difference_update(refused)
        for name, why in refused.items():
            self._outcomes[name] = NodeOutcome(name, False, error=f"{why}; it was left as it is")
        if (why := self._broken_off()) is not None:  # while their jobs ended
            self.stopped = why
            self._leave([[name for name in wave if name not in refused]], why)
            self._resume(manager, names)
            return
        self._outcomes.update(self._session.apply([name for name in wave if name not in refused]))
        self._resume(manager, [name for name in drained if self._outcomes[name].ok])

    def _resume(self, manager: Manager, good: list[str]) -> None:
        """What cannot be resumed stays drained and failed; a later run that finds it as declared resumes it."""
        if not good:
            return
        try:
            resumed = list(manager.resume(good, self._journal.run))
        except RackwrightError as error:
            why = f"could not be resumed: {error.message}"
            for name in good:
                done = f"it is as declared, but {why}" if self._outcomes[name].ok else why
                self._outcomes[name] = NodeOutcome(name, False, error=done)
            return
        self.left_drained.difference_update(good)
        released = [name for name in good if name not in resumed]  # drained by a person, before or meanwhile
        for event, nodes in (("resume", resumed), ("released", released)):
            if nodes:
                self._journal.write(event, sync=True, nodes=nodes)

    def _must_drain(self, wave: Iterable[str]) -> list[str]:
        """Workers of this wave on which something disruptive is planned."""
        if not self._policy.drain:
            return []
        return [
            name
            for name in wave
            if self._cluster.by_name[name].holds(NodeRole.WORKER)
            and any(operation.disruptive for operation in self._plan.nodes[name].operations)
        ]

    def _leave(self, waves: Iterable[Iterable[str]], why: str) -> None:
        for name in (name for wave in waves for name in wave):
            self._outcomes[name] = NodeOutcome(name, False, error=f"not begun: {why}")
