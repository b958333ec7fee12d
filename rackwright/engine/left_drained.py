"""Nodes that an earlier run drained and did not resume.

A run that is killed, or that fails on a node, leaves it drained, so that no job starts there. The journals of this
machine list those nodes, and the drain reasons name the run, whichever operator ran it; once a later run finds
such a node as declared, it resumes it, if its reason is still that run's. A node that the run rebooted, or may have
rebooted, must also pass its checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rackwright.engine.journal import append, known_run, runs
from rackwright.engine.lock_holder import RUN_NAME
from rackwright.engine.reboots import not_passed
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.workload.lookup import manager_of
from rackwright.workload.protocol import Manager
from rackwright.workload.several import forget_moved

Noted = Callable[[str, str, list[str]], None]
"""(run, event, nodes): `resume`, that run's nodes were resumed; `released`, it no longer drains them."""


def left_drained(cluster: str, roles: frozenset[str] | None) -> dict[str, list[str]]:
    """Run -> nodes, for finished runs. A run of some roles does not know why a node was drained for others."""
    found = {}
    for run in runs(cluster):
        of_these = roles is None or sorted(roles) == run.begin.get("roles")
        if of_these and (nodes := run.left_drained) and run.state != "running":
            found[run.run] = nodes
    return found


def put_back(cluster: Cluster, as_declared: Iterable[str], roles: frozenset[str] | None) -> str | None:
    """Resume those of these nodes that earlier runs left drained; a sentence about it, or None."""
    good = set(as_declared)
    left = {run: nodes for run, nodes in left_drained(cluster.name, roles).items() if good & set(nodes)}
    if not left:
        return None
    from rackwright.ssh import Pool  # loads paramiko, which many runs do not need

    with Pool(cluster) as pool:
        manager = manager_of(cluster, pool)
        if manager is None:
            return None
        return "; ".join(
            _put_back(cluster, manager, run, [name for name in nodes if name in good])
            for run, nodes in left.items()
        )


def put_back_all(
    cluster: Cluster,
    as_declared: Iterable[str],
    roles: frozenset[str] | None,
    *,
    own: str,
    resumed: str | None,
    noted: Noted,
) -> list[str]:
    """As `put_back`, for runs of every operator, and the rest by name; only for a run that holds the cluster's lock.

    No other run can be active then, so the run that a drained node names has ended.
    + own: this run, whose drained nodes are reported elsewhere
    + resumed: the run that this one continues; with `roles`, only its nodes are resumed
    """
    from rackwright.ssh import Pool

    with Pool(cluster) as pool:
        manager = manager_of(cluster, pool)
        if manager is None:
            return []
        good, mine = set(as_declared), left_drained(cluster.name, roles)
        mine.pop(own, None)
        try:
            left = _drained_by_runs(cluster, manager, own)
        except RackwrightError as error:
            # a stopped workload manager has drained nothing that jobs could start on, as far as we can know
            kept = {run: [name for name in nodes if name in good] for run, nodes in mine.items()}
            return [_not_resumed(run, nodes, error) for run, nodes in kept.items() if nodes]
        texts = []
        for run in dict.fromkeys([*left, *mine]):
            drained = left.get(run, [])
            may = roles is None or run == resumed or run in mine
            now = [name for name in drained if name in good and may]
            released = [name for name in mine.get(run, ()) if name in good and name not in drained]
            if now or released:
                texts.append(_put_back(cluster, manager, run, [*now, *released], noted))
            if rest := [name for name in drained if name not in now]:
                texts.append(f"{fold(rest)}: still drained by run {run}; see: rackwright runs {cluster.path}")
        return texts


def _drained_by_runs(cluster: Cluster, manager: Manager, own: str) -> dict[str, list[str]]:
    """Run -> nodes that it drains, according to the workload manager."""
    left: dict[str, list[str]] = {}
    for name, state in manager.states().items():
        run = state.run
        # any admin may write a reason, and a name that is not a run's must not become a file name
        if name in cluster.by_name and run is not None and run != own and RUN_NAME.fullmatch(run):
            left.setdefault(run, []).append(name)
    return left


def _put_back(
    cluster: Cluster,
    manager: Manager,
    run: str,
    nodes: list[str],
    noted: Noted = lambda run, event, nodes: None,
) -> str:
    bad = _not_passed(cluster, run, nodes)
    texts = [f"{name}: still drained by run {run}: its checks fail: {why}" for name, why in bad.items()]
    nodes = [name for name in nodes if name not in bad]
    if not nodes:
        return "; ".join(texts)
    try:
        forget_moved(manager, nodes)
        resumed = list(manager.resume(nodes, run))
    except RackwrightError as error:
        return _not_resumed(run, nodes, error)
    for event, those, text in (
        ("resume", resumed, "back in service, drained by run"),
        ("released", [name for name in nodes if name not in resumed], "left as is, no longer drained by run"),
    ):
        if those:
            append(cluster.name, run, event, nodes=those)
            noted(run, event, those)
            texts.append(f"{fold(those)}: {text} {run}")
    return "; ".join(texts)


def _not_passed(cluster: Cluster, run: str, nodes: list[str]) -> dict[str, str]:
    """Why nodes that the run rebooted (or may have, if its journal is elsewhere) fail their checks; others are omitted."""
    known = known_run(run)
    rebooted = nodes if known is None else [name for name in nodes if name in known.rebooted]
    found = not_passed(cluster, rebooted) if rebooted else {}
    return {name: why for name, why in found.items() if why is not None}


def _not_resumed(run: str, nodes: list[str], error: RackwrightError) -> str:
    return f"cannot resume {fold(nodes)}, drained by run {run}: {error.message}"
