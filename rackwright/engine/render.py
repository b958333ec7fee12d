"""The full text of every file a node would get, without a connection."""

from __future__ import annotations

from pathlib import Path

from rackwright.data import Site
from rackwright.engine.reports import Reports
from rackwright.errors import RunFailed
from rackwright.model.cluster import Cluster, Node
from rackwright.pyinfra_driver.driver import Driver
from rackwright.pyinfra_driver.offline import EmptyNode
from rackwright.shipped import deploy_of


def render_node(cluster: Cluster, node: Node, *, deploy: Path | None = None) -> dict[str, str]:
    """Path -> text of every file the deploy (None: the site's) would write to an empty node; secrets are placeholders.

    Raises RunFailed when a role cannot be evaluated for this node.
    """
    reports = Reports()
    chosen = deploy or deploy_of(cluster.path)
    Driver([Site(cluster, node, offline=True)], chosen, reports, connector=EmptyNode).plan()
    plan = reports.plans[node.name]
    if plan.error is not None:
        raise RunFailed(f"Cannot render the files of {node.name}: {plan.error}")
    return {
        change.target: change.content
        for operation in plan.operations
        for change in operation.changes
        if change.kind == "file" and change.content is not None
    }
