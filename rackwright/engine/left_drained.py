"""Nodes that an earlier run drained and did not live to put back into service.

A run that is killed, or that fails on a node, leaves it drained: nobody should get jobs there. The
journals tell which nodes those are; once a later run finds one as declared, it is put back, if its
reason in the scheduler is still that run's.
"""

from __future__ import annotations

from collections.abc import Iterable

from rackwright.engine.journal import Run, append, runs
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold


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
    said = []
    for run, nodes in left_drained(cluster.name, roles).items():
        mine = [name for name in nodes if name in good]
        if not mine:
            continue
        from rackwright.workload.slurm.drain import (
            Drainer,  # loads ssh, which a run without leftovers does not need
        )

        try:
            with Drainer(cluster, run) as drainer:
                drainer.resume(mine)
        except RackwrightError as error:
            said.append(f"{fold(mine)}, drained by run {run}, could not be resumed: {error.message}")
            continue
        append(cluster.name, run, "resume", nodes=mine)
        said.append(f"{fold(mine)}: back in service, drained by run {run}")
    return "; ".join(said) or None
