"""The accounts of a cluster, as a tree, whichever role declares them. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from rackwright.kubernetes.gpu_names import GPU
from rackwright.model.kubernetes_offers import (
    DeclaresTenants,
    GivesGpus,
    TenantAccount,
    TenantQos,
    TenantUser,
)
from rackwright.model.types import NodeRole, Workload

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.kubernetes_scheduling.options import KubernetesSchedulingOptions

ROOT = "root"
_KUBERNETES = frozenset({Workload.KUBERNETES, Workload.SLURM_ON_KUBERNETES})


class Tenants(NamedTuple):
    """Accounts, users and QOS by name."""

    accounts: Mapping[str, TenantAccount]
    users: Mapping[str, TenantUser]
    qos: Mapping[str, TenantQos]


def tenants_of(options: KubernetesSchedulingOptions, cluster: Cluster) -> Tenants:
    """The role's own; without any, those of the slurm role on any node of the cluster."""
    if options.accounts:
        return Tenants(options.accounts, options.users, options.qos)
    for node in cluster.nodes:
        for role, given in node.options.items():
            if role != "kubernetes_scheduling" and isinstance(given, DeclaresTenants):
                return Tenants(given.accounts, given.users, given.qos)
    return Tenants({}, {}, {})


def namespace(options: KubernetesSchedulingOptions, account: str) -> str:
    """The namespace of an account; sacctmgr allows `_` and `.` in names, DNS labels do not."""
    return f"{options.namespace_prefix}{dns_label(account)}"


def dns_label(name: str) -> str:
    """A name as Kubernetes takes it."""
    return name.replace("_", "-").replace(".", "-").strip("-")


def children(accounts: Mapping[str, TenantAccount], name: str) -> list[str]:
    """Accounts directly below one, in file order."""
    return [child for child, account in accounts.items() if account.parent == name]


def allowed_qos(tenants: Tenants, name: str) -> frozenset[str]:
    """QOS that an account's pods may have: its own, or the next ancestor's that names any; otherwise all."""
    seen: set[str] = set()
    while name in tenants.accounts and name not in seen:
        seen.add(name)
        if tenants.accounts[name].qos:
            return frozenset(tenants.accounts[name].qos)
        name = tenants.accounts[name].parent
    return frozenset(tenants.qos)


def members(tenants: Tenants, account: str) -> list[str]:
    """Users of an account, sorted."""
    return sorted(
        name
        for name, user in tenants.users.items()
        if account == user.default_account or account in user.accounts
    )


def workers(cluster: Cluster) -> tuple[Node, ...]:
    """Nodes that take pods of users."""
    found = (node for node in cluster.running("kubernetes") if node.holds(NodeRole.WORKER))
    return tuple(node for node in found if node.serves(_KUBERNETES))


def gpus_of(node: Node) -> Mapping[str, int]:
    """What a node offers by resource name; whole GPUs where none of its roles offers GPUs."""
    gives = node.offers(GivesGpus)
    if gives is not None:
        return gives.gpu_resources(node)
    return {} if node.sku.gpus is None else {GPU: node.sku.gpus.count}
