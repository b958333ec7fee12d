"""Nodes that an earlier run drained and did not live to put back into service.

A run that is killed, or that fails on a node, leaves it drained, so that no job starts there. The
journals list those nodes; once a later run finds one as declared, it is put back, if its reason in the
workload manager is still that run's.
"""

from __future__ import annotations

from collections.abc import Iterable

from rackwright.engine.journal import Run, append, runs
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.workload.lookup import manager_of
from rackwright.workload.protocol import Manager


def left_drained(cluster: str, roles: frozenset[str] | None) -> dict[str, list[str]]:
    """Run -> nodes, for runs that ended. A run of some roles says nothing of a node drained for others."""
    found = {}
    for run in runs(cluster):
        of_these = roles is None or sorted(roles) == run.begin.get("roles")
        if of_these and (nodes := _still_out(run)) and run.state != "running":
            found[run.run] = nodes
    return found


def _still_out(run: Run) -> list[str]:
    out: dict[str, None] = {}
    for event in run.events:
        if event["event"] == "drain":
            out.update(dict.fromkeys(event["nodes"]))
        elif event["event"] == "resume":
            for node in event["nodes"]:
                out.pop(node, None)
    return list(out)


def put_back(cluster: Cluster, as_declared: Iterable[str], roles: frozenset[str] | None) -> str | None:
    """Resume those of these nodes that earlier runs left drained; a sentence about it, or None."""
    good = set(as_declared)
    left = {run: nodes for run, nodes in left_drained(cluster.name, roles).items() if good & set(nodes)}
    if not left:
        return None
    from rackwright.ssh import Pool  # loads paramiko, which a run without leftovers does not need

    with Pool(cluster) as pool:
        manager = manager_of(cluster, pool)
        if manager is None:
            return None
        return "; ".join(
            _put_back(cluster, manager, run, [name for name in nodes if name in good])
            for run, nodes in left.items()
        )


def _put_back(cluster: Cluster, manager: Manager, run: str, nodes: list[str]) -> str:
    try:
        manager.resume(nodes, run)
    except RackwrightError as error:
        return f"{fold(nodes)}, drained by run {run}, could not be resumed: {error.message}"
    append(cluster.name, run, "resume", nodes=nodes)
    return f"{fold(nodes)}: back in service, drained by run {run}"
