"""Which nodes, roles and checks a run is about."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from rackwright.claims.check import Check, Undetermined
from rackwright.clusterfile.roles import package_of
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.options import RoleOptions
from rackwright.model.ranges import fold
from rackwright.model.selection import pick

LOADING = "the role's checks can be loaded"
"""Name of the result that replaces the checks of a role that has none to load."""


@dataclass(frozen=True)
class PlannedCheck:
    """One check to be run on one node."""

    role: str
    check: Check
    node: Node
    options: RoleOptions
    order: int
    """Place of the check within its role."""


@dataclass(frozen=True)
class Selection:
    """All checks of a run, and what its limits leave out."""

    nodes: tuple[Node, ...]
    checks: tuple[PlannedCheck, ...]
    left_out: tuple[str, ...]
    """Cluster-wide checks ("role: check") not run because the primary head is not selected."""


def load_checks(role: str) -> tuple[Check, ...]:
    """CHECKS of a role's `verify` module, shipped or the site's; Undetermined if it cannot be loaded."""
    name = f"{package_of(role)}.verify"
    try:
        checks = importlib.import_module(name).CHECKS
    except Exception as error:  # a broken role must not silence the others
        raise Undetermined(f"{name} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(checks, tuple) or not all(isinstance(check, Check) for check in checks):
        raise Undetermined(f"CHECKS of {name} is not a tuple of Check")
    if not checks:
        raise Undetermined(f"CHECKS of {name} is empty: the role claims nothing")
    return checks


def select(
    cluster: Cluster,
    *,
    limit: str | None,
    roles: frozenset[str] | None,
    checks_of: Callable[[str], tuple[Check, ...]] = load_checks,
) -> Selection:
    """Pair every selected node with the checks of its roles.

    Checks of scope "cluster" run once, on the primary head, with its own options of the
    role or else those of the first node that has the role.
    """
    nodes = pick(cluster, limit)
    if not nodes:
        raise RackwrightError(
            "The node selection is empty.", hint=f"nodes of the cluster: {fold(cluster.by_name)}"
        )
    present = {role for node in cluster.nodes for role in node.options}
    if roles is not None and not roles <= present:
        missing = ", ".join(sorted(roles - present))
        raise RackwrightError(
            f"No node of cluster {cluster.name} has the role {missing}.",
            hint=f"roles of the cluster: {', '.join(sorted(present))}",
        )
    checks: list[PlannedCheck] = []
    left_out: list[str] = []
    for role in sorted(present if roles is None else roles):
        holders = [node for node in cluster.nodes if role in node.options]
        for order, check in enumerate(_checks(role, checks_of)):
            if check.scope == "node":
                asked = [(node, node.options[role]) for node in holders if node in nodes]
            elif cluster.primary in nodes:
                asked = [(cluster.primary, cluster.primary.options.get(role) or holders[0].options[role])]
            else:
                asked = []
                left_out.append(f"{role}: {check.name}")
            checks += [
                PlannedCheck(role, check, node, options, order)
                for node, options in asked
                if check.applies is None or check.applies(node, options)
            ]
    return Selection(nodes, tuple(checks), tuple(left_out))


def _checks(role: str, checks_of: Callable[[str], tuple[Check, ...]]) -> tuple[Check, ...]:
    try:
        return checks_of(role)
    except Undetermined as error:
        reason = str(error)

        def unknown(_context: object) -> str:
            raise Undetermined(reason)

        return (Check(LOADING, unknown),)
