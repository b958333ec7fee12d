"""Runs a burn-in, group by group: nodes of one SKU, one MIG layout and one workload manager are measured together."""

from __future__ import annotations

import time
from contextlib import ExitStack
from datetime import UTC, datetime

from rackwright.burnin.engines import Engine, engine_for
from rackwright.burnin.group import GroupRun
from rackwright.burnin.measuring import Measurer, Progress
from rackwright.burnin.profiles import Profile, plan_of
from rackwright.burnin.rails import devices_of_nccl, rails_of
from rackwright.burnin.ray_collective import RayCollective
from rackwright.burnin.report import BurninReport, SkuGroup
from rackwright.burnin.store import RESULTS
from rackwright.errors import BurninError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.model.selection import pick
from rackwright.model.types import NodeRole, WorkloadManager
from rackwright.ssh import Pool, RootShell
from rackwright.workload.lookup import kind_on, manager_of
from rackwright.workload.protocol import gpus_of


def burnin(
    cluster: Cluster,
    *,
    nodes: str | None = None,
    pairs: bool = False,
    ranks_per_node: int = 1,
    profile: Profile | None = None,
    hours: float | None = None,
    shell: RootShell | None = None,
    progress: Progress = lambda text: None,
) -> BurninReport:
    """Measure the workers through the workload manager, judge and store the result.

    `nodes` is a NodeSet expression of workers (None: all). `pairs` tests pairs of nodes even where no floor is
    missed; `ranks_per_node` is for ranks on CPUs; `profile` and `hours` win over the cluster file's. Raises
    BurninError when the declaration cannot be run; failures of the workload manager or a node are in the report.
    """
    groups = _alike(cluster, nodes)
    engines = [_engine(cluster, members[0], ranks_per_node) for members in groups]
    started, begun = datetime.now(UTC), time.monotonic()
    measured: list[SkuGroup] = []

    def report(*more: SkuGroup) -> BurninReport:
        return BurninReport(
            cluster=cluster.name,
            file=str(cluster.path),
            sha256=cluster.sha256,
            groups=(*measured, *more),
            started=started,
            seconds=time.monotonic() - begun,
            profile=profile or cluster.burnin.profile,
        )

    with ExitStack() as stack:
        reached = shell if shell is not None else stack.enter_context(Pool(cluster))
        manager = manager_of(cluster, reached)
        if manager is None:
            raise BurninError(
                f"Burn-in runs its jobs through a workload manager, and no role of cluster {cluster.name} runs one."
            )
        for engine, members in zip(engines, groups, strict=True):
            plan = plan_of(cluster.burnin, engine, members[0].sku, profile, hours)
            run = GroupRun(cluster, plan, Measurer(engine, manager, progress), members, reached)
            measured.append(run.run(force_pairs=pairs, keep=lambda group: _keep(report(group))))
    whole = report()
    _keep(whole)
    return whole


def _keep(report: BurninReport) -> None:
    RESULTS.add(report.cluster, report.started, report.to_json())


def _engine(cluster: Cluster, node: Node, ranks_per_node: int) -> Engine:
    rails, devices = rails_of(cluster, node), devices_of_nccl(cluster, node)
    if kind_on(node) is WorkloadManager.RAY:
        factor = cluster.ssh.time_factor
        return RayCollective(cluster.burnin, node, ranks_per_node, rails, devices, factor)
    return engine_for(cluster.burnin, node, ranks_per_node, rails, devices)


def _alike(cluster: Cluster, nodes: str | None) -> list[tuple[Node, ...]]:
    """The chosen workers by SKU, MIG layout and workload manager."""
    chosen = cluster.holding(NodeRole.WORKER) if nodes is None else pick(cluster, nodes)
    others = [node.name for node in chosen if not node.holds(NodeRole.WORKER)]
    if others or not chosen:
        named = f"{fold(others)} is not a worker" if others else "The selection has no worker"
        raise BurninError(f"{named} of cluster {cluster.name}; burn-in runs on workers.")
    groups: dict[object, tuple[Node, ...]] = {}
    for node in chosen:
        alike = node.sku.name, gpus_of(node), kind_on(node)
        groups[alike] = (*groups.get(alike, ()), node)
    return list(groups.values())
