"""Every file a node would get, whole, without reaching it."""

from __future__ import annotations

from pathlib import Path

from rackwright.data import Site
from rackwright.engine.session import SITE
from rackwright.errors import RunFailed
from rackwright.model.cluster import Cluster, Node
from rackwright.plan.node_plan import NodeOutcome, NodePlan
from rackwright.pyinfra_driver.driver import Driver
from rackwright.pyinfra_driver.offline import EmptyNode


class _Kept:
    """A Reporter that keeps plans; nothing is ever applied to an empty node."""

    def __init__(self) -> None:
        self.plans: list[NodePlan] = []

    def planned(self, plan: NodePlan) -> None:
        self.plans.append(plan)

    def started(self, node: str, role: str, name: str) -> None: ...

    def finished(self, node: str, role: str, name: str, changed: bool, error: str | None) -> None: ...

    def applied(self, outcome: NodeOutcome) -> None: ...


def render_node(cluster: Cluster, node: Node, *, deploy: Path = SITE) -> dict[str, str]:
    """Path -> text of every file the deploy would write to an empty node; secrets are placeholders.

    Raises RunFailed when a role cannot be evaluated for this node.
    """
    kept = _Kept()
    Driver([Site(cluster, node, offline=True)], deploy, kept, connector=EmptyNode).plan()
    (plan,) = kept.plans
    if plan.error is not None:
        raise RunFailed(f"{node.name} cannot be rendered: {plan.error}")
    return {
        change.target: change.content
        for operation in plan.operations
        for change in operation.changes
        if change.kind == "file" and change.content is not None
    }
