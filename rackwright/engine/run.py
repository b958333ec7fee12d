"""Plan and apply, for the command line and for accept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rackwright.engine.head_lock import HeadLock
from rackwright.engine.journal import Journal, event_line
from rackwright.engine.left_drained import put_back, put_back_all
from rackwright.engine.new_secrets import NewSecrets, generated, imagined, refuse_unfinished_rotation
from rackwright.engine.reboots import Asked
from rackwright.engine.rollout import Rollout
from rackwright.engine.run_lock import run_lock, who
from rackwright.engine.session import Session, Watcher
from rackwright.factcache.cache import version_key
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.model.settings import Waves
from rackwright.plan.erasures import Erasable, checked
from rackwright.plan.node_plan import ApplyResult, PlanResult

OF_FLAGS = {"canary", "size", "stop_after", "pause_seconds"}
"""Wave settings that flags may override: stored with a run, so that resume uses them."""

Notice = Callable[[str], None]
"""Receives sentences for the operator during a run."""


@dataclass(frozen=True)
class Applied:
    """A plan and its result (None: there was nothing to do, or it was declined)."""

    plan: PlanResult
    result: ApplyResult | None
    run: str | None = None
    """The name of its journal."""
    notes: tuple[str, ...] = ()
    """Sentences for the operator: nodes left drained by this run or others, resumed nodes, why it stopped."""

    def noting(self, *notes: str | None) -> Applied:
        """A copy with further notes; None is ignored."""
        return replace(self, notes=(*self.notes, *(note for note in notes if note is not None)))

    def to_json(self) -> dict[str, Any]:
        """What `apply --json` prints."""
        done = self.result
        return {
            "cluster": self.plan.cluster,
            "exit_code": int((done or self.plan).exit_code),
            "run": self.run,
            "planned_changes": self.plan.changes,
            "applied": done is not None,
            "interrupted": done is not None and done.interrupted,
            "unknown": {node.node: node.error or "" for node in self.plan.failed},
            "nodes": [one.to_json() for one in done.nodes.values()] if done is not None else [],
            "notes": list(self.notes),
        }

    @property
    def in_sync(self) -> list[str]:
        """Nodes known to be as declared after this run."""
        outcomes = self.result.nodes if self.result is not None else {}
        return [name for name, node in self.plan.nodes.items() if outcomes.get(name, node).as_declared]


def plan(
    cluster: Cluster,
    *,
    limit: str | None = None,
    roles: frozenset[str] | None = None,
    deploy: Path | None = None,
    watch: Watcher | None = None,
    full: bool = False,
    renewed: frozenset[str] = frozenset(),
) -> PlanResult:
    """What an apply would change now; changes nothing.

    `full` ignores cached results; `renewed` names secrets that are planned with a new value.
    """
    secrets = imagined(cluster, limit, roles)
    with Session(
        cluster,
        limit=limit,
        roles=roles,
        deploy=deploy,
        watch=watch,
        full=full,
        plans_only=True,
        renewed=renewed,
    ) as session:
        planned = session.plan()
    secrets.refuse_replacing(planned, apply=False)
    return planned


def apply(
    cluster: Cluster,
    *,
    limit: str | None = None,
    roles: frozenset[str] | None = None,
    deploy: Path | None = None,
    watch: Watcher | None = None,
    agree: Callable[[PlanResult], bool] = lambda plan: True,
    erase: Callable[[PlanResult], Erasable] = lambda plan: {},
    notice: Notice = lambda text: None,
    waves: Waves | None = None,
    parallel: int | None = None,
    resumed: str | None = None,
    new_secrets: bool = False,
    reboots: Asked | None = None,
) -> Applied:
    """Plan, have the plan confirmed, and carry it out.

    `erase` returns the disks whose serials were typed; `waves` overrides the cluster file's, `parallel` limits the nodes
    per worker, `new_secrets` generates lost ones, `reboots`: for due reboots. Holds the lock here, and on a head (RunLocked).
    """
    with (
        run_lock(cluster.name),
        _secrets_of(cluster, limit, roles, deploy, new_secrets) as (secrets, code),
        ExitStack() as locks,
        ExitStack() as sessions,
    ):
        policy, began = waves or cluster.waves, time.monotonic()
        request = _Request(cluster, limit, roles, deploy, watch, policy, parallel, code, reboots)
        session = sessions.enter_context(request.session())
        planned = session.plan()
        secrets.refuse_replacing(planned, apply=True)
        if not request.has_work(planned) and resumed is None:
            return request.unchanged(planned)
        journal = request.journal()
        by = {"run": journal.run, **who()}
        head = locks.enter_context(HeadLock(cluster, by, lost=lambda why: session.stop(why), notice=notice))
        if head.another_ran_within(time.monotonic() - began):
            notice("Another run finished while this one was planning: planning again.")
            session = sessions.enter_context(request.session())
            planned = session.plan()
            secrets.refuse_replacing(planned, apply=True)
        if request.has_work(planned):
            if not agree(planned):
                return Applied(planned, None)
            session.erasable = checked(planned, erase(planned))
            secrets.mark_applied()
        applied = _carry_out(request, session, planned, journal, head, notice).noting(secrets.note)
        return applied if session.stopped else _put_back(request, applied, journal.run, resumed, head)


@dataclass(frozen=True)
class _Request:
    """The request for an apply."""

    cluster: Cluster
    limit: str | None
    roles: frozenset[str] | None
    deploy: Path | None
    """None: the site's."""
    watch: Watcher | None
    policy: Waves
    parallel: int | None
    code: str | None
    """Code key of a plan whose secrets were generated for it."""
    reboots: Asked | None = None

    def has_work(self, planned: PlanResult) -> bool:
        """Whether there is something to apply, or to reboot if requested."""
        return bool(planned.changes or (self.reboots is not None and planned.reboots))

    def session(self) -> Session:
        return Session(
            self.cluster,
            limit=self.limit,
            roles=self.roles,
            deploy=self.deploy,
            watch=self.watch,
            parallel=self.parallel,
            code=self.code,
        )

    def journal(self) -> Journal:
        return Journal(
            self.cluster.name,
            self.cluster.path,
            limit=self.limit,
            roles=self.roles,
            deploy=None if self.deploy is None else self.deploy.stem,
            policy={
                **self.policy.model_dump(include=OF_FLAGS),
                "parallel": self.parallel,
                "boot_timeout": self.reboots.boot_timeout_seconds if self.reboots is not None else None,
            },
            watch=self.watch,
        )

    def unchanged(self, planned: PlanResult) -> Applied:
        applied = Applied(planned, None)
        if self.deploy is not None:
            return applied
        return applied.noting(put_back(self.cluster, applied.in_sync, self.roles))


def _carry_out(
    request: _Request,
    session: Session,
    planned: PlanResult,
    journal: Journal,
    head: HeadLock,
    notice: Notice,
) -> Applied:
    if not request.has_work(planned):
        return Applied(planned, None)
    journal.mirror = head.send
    with journal:
        journal.planned(planned)
        session.add_watcher(journal)
        cluster, policy = request.cluster, request.policy
        rollout = Rollout(
            session,
            cluster,
            planned,
            policy,
            journal,
            confirm=head.confirm,
            notice=notice,
            reboots=request.reboots,
        )
        result = rollout.run()
    notes = [*rollout.notes]
    if rollout.stopped is not None:
        notes.append(f"The run stopped: {rollout.stopped}.")
    if rollout.left_drained:
        notes.append(
            f"{fold(sorted(rollout.left_drained))}: left drained by this run; to resume them once they are as declared: "
            f"rackwright resume {journal.run}"
        )
    return Applied(planned, result, journal.run, tuple(notes))


def _put_back(request: _Request, applied: Applied, own: str, resumed: str | None, head: HeadLock) -> Applied:
    """Also resumes nodes that runs left drained, if they are as declared; only for the site's deploy."""
    if request.deploy is not None:
        return applied

    def noted(run: str, event: str, nodes: list[str]) -> None:
        head.send(run, event_line(event, nodes=nodes))

    cluster, roles = request.cluster, request.roles
    texts = put_back_all(cluster, applied.in_sync, roles, own=own, resumed=resumed, noted=noted)
    return applied.noting(*texts)


@contextmanager
def _secrets_of(
    cluster: Cluster, limit: str | None, roles: frozenset[str] | None, deploy: Path | None, new: bool
) -> Iterator[tuple[NewSecrets, str | None]]:
    """The run's secrets, and the plan's code key if they had to be generated: the one without them.

    Secrets generated for a plan that is not carried out are removed again.
    """
    refuse_unfinished_rotation(cluster)
    code = version_key(cluster, deploy)  # before they are stored: as for a plan made earlier
    secrets = generated(cluster, limit, roles, new_secrets=new)
    try:
        yield secrets, code if secrets.new else None
    finally:
        secrets.discard_unused()
