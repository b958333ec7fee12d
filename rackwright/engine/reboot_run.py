"""`rackwright reboot`: nodes rebooted in waves, whether that is due or not, and nothing applied to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rackwright.engine.boots import Boots
from rackwright.engine.head_lock import HeadLock
from rackwright.engine.journal import Journal, append
from rackwright.engine.reboots import Asked, jobs_on
from rackwright.engine.rollout import Rollout
from rackwright.engine.run_lock import run_lock, who
from rackwright.engine.session import Session, Watcher
from rackwright.engine.waves import plan_waves
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.model.selection import pick
from rackwright.model.types import NodeRole
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import ApplyResult, NodePlan, PlanResult
from rackwright.ssh import Pool
from rackwright.workload.lookup import manager_of
from rackwright.workload.protocol import Job

REBOOT = "reboot"
"""What the journal of such a run names in place of a deploy."""
_ASKED = Change("reboot", "boot", "running", "a new one, as asked", disruptive=True)


@dataclass(frozen=True)
class Shown:
    """What an operator agrees to."""

    waves: tuple[tuple[str, ...], ...]
    jobs: dict[str, tuple[Job, ...]] = field(default_factory=dict)
    jobs_unknown: str | None = None
    """Why it is not known which jobs run."""

    @property
    def nodes(self) -> list[str]:
        """All nodes, in the order of their reboots."""
        return [name for wave in self.waves for name in wave]


@dataclass(frozen=True)
class Rebooted:
    """The result of a run."""

    result: ApplyResult
    run: str
    notes: tuple[str, ...] = ()


class _NothingToApply(Session):
    """A session that begins no worker: nodes are rebooted, and nothing is applied."""

    def stop(self, why: str) -> None:
        self.stopped = why


def reboot(
    cluster: Cluster,
    limit: str,
    asked: Asked,
    *,
    agree: Callable[[Shown], bool] = lambda shown: True,
    notice: Callable[[str], None] = lambda text: None,
    watch: Watcher | None = None,
    resumed: str | None = None,
) -> Rebooted | None:
    """Reboot these nodes, once agreed to; None: it was declined.

    RackwrightError before anything is done where one of them cannot be rebooted from here. Holds both locks of an
    apply. `resumed`: a run that is continued; what it left drained is put back once it passes.
    """
    nodes = pick(cluster, limit)
    if not nodes:
        raise RackwrightError("No node was named.", hint=f"its nodes are {fold(cluster.by_name)}")
    with run_lock(cluster.name):
        _refuse(cluster, [node.name for node in nodes], asked)
        waves = plan_waves(nodes, cluster.waves, heads_alone=True)
        if not agree(_shown(cluster, waves)):
            return None
        session = _NothingToApply(cluster, limit=limit, watch=watch)
        policy = {"boot_timeout": asked.boot_timeout_seconds}
        journal = Journal(
            cluster.name, cluster.path, limit=limit, roles=None, deploy=REBOOT, policy=policy, watch=watch
        )
        due = {node.name: NodePlan(node.name, reboot=(_ASKED,)) for node in nodes}
        plan = PlanResult(cluster.name, str(cluster.path), cluster.sha256, due)
        with HeadLock(cluster, {"run": journal.run, **who()}, lost=session.stop, notice=notice) as held:
            journal.mirror = held.send
            with journal:
                journal.planned(plan)
                rollout = Rollout(
                    session,
                    cluster,
                    plan,
                    cluster.waves,
                    journal,
                    confirm=held.confirm,
                    notice=notice,
                    reboots=asked,
                )
                result = rollout.run()
            notes = _notes(rollout, journal.run, cluster)
            if resumed is not None and session.stopped is None:
                notes += _put_back(cluster, result, resumed)
    return Rebooted(result, journal.run, tuple(notes))


def _refuse(cluster: Cluster, names: list[str], asked: Asked) -> None:
    with Pool(cluster) as pool:
        before = Boots(cluster, pool, asked.boot_timeout_seconds).before(names)
    never = {name: one.never for name, one in before.items() if one.never is not None}
    if never:
        raise RackwrightError(
            "Nothing was rebooted: " + "; ".join(f"{name}: {why}" for name, why in never.items()) + ".",
            hint="leave them out of --limit",
        )


def _shown(cluster: Cluster, waves: list[tuple[str, ...]]) -> Shown:
    names = [name for wave in waves for name in wave if cluster.by_name[name].holds(NodeRole.WORKER)]
    try:
        return Shown(tuple(waves), jobs_on(cluster, names))
    except RackwrightError as error:
        return Shown(tuple(waves), jobs_unknown=error.message)


def _notes(rollout: Rollout, run: str, cluster: Cluster) -> list[str]:
    notes = [*rollout.notes]
    if rollout.stopped is not None:
        notes.append(f"The run stopped: {rollout.stopped}.")
    if rollout.left_drained:
        notes.append(
            f"{fold(sorted(rollout.left_drained))}: left drained by this run; put back once as declared and passing: "
            f"rackwright apply {cluster.path}"
        )
    return notes


def _put_back(cluster: Cluster, result: ApplyResult, resumed: str) -> list[str]:
    """What the run that is continued had drained, as far as this one saw it through."""
    good = [name for name, outcome in result.nodes.items() if outcome.ok]
    with Pool(cluster) as pool:
        manager = manager_of(cluster, pool)
        done = list(manager.resume(good, resumed)) if manager is not None and good else []
    if not done:
        return []
    append(cluster.name, resumed, "resume", nodes=done)
    return [f"{fold(done)}: back in service, drained by run {resumed}"]
