"""Repairs drift of roles that allow it (`drift: repair`), and never with a disruptive operation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rackwright.drift import paths
from rackwright.drift.install import update_digests
from rackwright.engine.run import apply
from rackwright.engine.session import Watcher
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.plan.node_plan import NodePlan, PlanResult


@dataclass
class Repaired:
    """The result, by node."""

    done: dict[str, int] = field(default_factory=dict)
    """Operations that changed something."""
    left: dict[str, str] = field(default_factory=dict)
    """Drift of roles that allow repair that was not repaired, and why."""


def refuse_read_only(cluster: Cluster) -> None:
    """RackwrightError if the cluster is accessed as the unprivileged user of the drift check."""
    if cluster.ssh.user == paths.USER:
        raise RackwrightError(
            f"{paths.USER} may only check nodes for drift; it cannot repair anything.",
            hint="repair as the user and with the key that apply uses (ssh.user, ssh.key)",
        )


def repairable(node: Node, plan: NodePlan) -> tuple[frozenset[str], str | None]:
    """Roles of a drifted node to repair, and why the node must not be repaired now (None: it may)."""
    allowed = {name for name, options in node.options.items() if options.drift == "repair"}
    mine = [operation for operation in plan.operations if operation.role in allowed]
    roles = frozenset(operation.role for operation in mine)
    disruptive = [f"{operation.role}: {operation.name}" for operation in mine if operation.disruptive]
    if disruptive:
        return roles, f"it would be disruptive ({', '.join(disruptive)})"
    return roles, None


def repair(cluster: Cluster, found: PlanResult, watch: Watcher | None = None) -> Repaired:
    """Repair what a drift check found, for roles that allow it; nodes with the same roles together."""
    refuse_read_only(cluster)
    result = Repaired()
    groups: dict[frozenset[str], list[str]] = {}
    for name, plan in found.nodes.items():
        roles, why_not = repairable(cluster.by_name[name], plan)
        if why_not is not None:
            result.left[name] = why_not
        elif roles:
            groups.setdefault(roles, []).append(name)
    for roles, names in groups.items():
        _repair(cluster, roles, names, result, watch)
    return result


def _repair(
    cluster: Cluster, roles: frozenset[str], names: Iterable[str], result: Repaired, watch: Watcher | None
) -> None:
    def agree(plan: PlanResult) -> bool:
        # The nodes may have changed since they were checked: a wave with a disruptive operation is skipped.
        return not any(operation.disruptive for node in plan.nodes.values() for operation in node.operations)

    applied = apply(cluster, limit=fold(names), roles=roles, agree=agree, watch=watch)
    update_digests(cluster, applied)
    for name, plan in applied.plan.nodes.items():
        if applied.result is None:
            if plan.changes:
                result.left[name] = "a disruptive operation was found when it was planned again"
            continue
        outcome = applied.result.nodes[name]
        result.done[name] = outcome.changed
        if not outcome.ok:
            result.left[name] = outcome.error or "it failed"
