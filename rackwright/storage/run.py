"""Runs the storage bench, filesystem by filesystem."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

from rackwright.burnin.finding import Finding
from rackwright.errors import StorageError
from rackwright.model.cluster import Cluster
from rackwright.model.storage import Filesystem
from rackwright.ssh import Pool, RootShell
from rackwright.status import Status
from rackwright.storage.history import compared
from rackwright.storage.measure import FilesystemRun, Progress, With
from rackwright.storage.plan import checkpoint_of, chosen, limited, out_of_scope, sizes_of, users_of
from rackwright.storage.report import BenchReport, FilesystemResult
from rackwright.storage.store import RESULTS
from rackwright.workload.lookup import manager_of


def bench(
    cluster: Cluster,
    *,
    name: str | None = None,
    limit: str | None = None,
    quick: bool = False,
    only_checkpoint: bool = False,
    shell: RootShell | None = None,
    progress: Progress = lambda text: None,
) -> BenchReport:
    """Measure the declared filesystems through the workload manager, judge, compare and store the result.

    `name`: one filesystem alone. `limit`: a NodeSet of nodes. `quick` writes less. `only_checkpoint`: the checkpoint
    stage alone. Raises StorageError when the declaration cannot be run; what nodes do is in the report.
    """
    wanted = [one for one in chosen(cluster, name) if not only_checkpoint or _has_checkpoints(one)]
    if not wanted:
        raise StorageError(
            "No filesystem has a checkpoint stage."
            if name is None
            else f"The filesystem {name} has no checkpoint stage.",
            hint="declare `purpose: checkpoint`, or `bench: {checkpoint: {}}` on a shared filesystem",
        )
    earlier = RESULTS.all(cluster.name)
    started, begun = datetime.now(UTC), time.monotonic()
    results: list[FilesystemResult] = []
    with ExitStack() as stack:
        reached = shell if shell is not None else stack.enter_context(Pool(cluster))
        manager = manager_of(cluster, reached)
        if manager is None:
            raise StorageError(
                f"The bench runs its jobs through a workload manager, and no role of cluster {cluster.name} runs one."
            )
        given = With(cluster, manager, reached, progress)
        for one in wanted:
            result = _one(given, one, limit, quick=quick, only_checkpoint=only_checkpoint)
            results.append(compared(result, earlier))
    report = BenchReport(
        cluster=cluster.name,
        file=str(cluster.path),
        sha256=cluster.sha256,
        results=tuple(results),
        started=started,
        seconds=time.monotonic() - begun,
        quick=quick,
        what="checkpoint" if only_checkpoint else "bench",
    )
    RESULTS.add(report.cluster, report.started, report.to_json())
    return report


def _one(
    given: With, one: Filesystem, limit: str | None, *, quick: bool, only_checkpoint: bool
) -> FilesystemResult:
    nothing = FilesystemResult(one.name, one.kind.value, one.purpose.value, one.path)
    why = out_of_scope(given.cluster, one)
    nodes = limited(given.cluster, users_of(given.cluster, one), limit)
    if why is None and not nodes:
        why = f"none of {limit} uses it and runs jobs"
    if why is not None:
        return replace(nothing, findings=(Finding(Status.OUT_OF_SCOPE, f"{one.name}: {why}"),))
    sizes = sizes_of(one, quick=quick)
    return FilesystemRun(given, one, nodes, sizes, only_checkpoint=only_checkpoint).run()


def _has_checkpoints(one: Filesystem) -> bool:
    return one.kind.shared and checkpoint_of(one) is not None
