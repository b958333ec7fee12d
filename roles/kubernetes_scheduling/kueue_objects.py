"""Kueue's objects: flavors by SKU, a queue for each account, cohorts along the tree of accounts. Pure functions.

apis/kueue/v1beta2 of kubernetes-sigs/kueue, v0.19.2, and v1beta1 of the same tree, read 2026-11-28.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rackwright.roles.kubernetes_scheduling.shares import Amounts, capacity, guaranteed, minus
from rackwright.roles.kubernetes_scheduling.tenants import (
    ROOT,
    Tenants,
    children,
    dns_label,
    namespace,
    tenants_of,
)

if TYPE_CHECKING:
    from rackwright.kubernetes.objects import Object
    from rackwright.model.cluster import Cluster
    from rackwright.roles.kubernetes_scheduling.options import KubernetesSchedulingOptions, Kueue

_GROUP = "kueue.x-k8s.io"
_SKU = "rackwright.dev/sku"
_QUEUE = "default"
"""Jobs of a namespace that name no queue go to the LocalQueue of this name (LocalQueueDefaulting)."""
_INT32 = 2**31 - 1


def objects(options: KubernetesSchedulingOptions, kueue: Kueue, cluster: Cluster) -> Iterator[Object]:
    """All of them."""
    tenants = tenants_of(options, cluster)
    there = capacity(cluster)
    for sku in there:
        yield _object(kueue, "ResourceFlavor", dns_label(sku), {"nodeLabels": {_SKU: sku}})
    for name, qos in tenants.qos.items():
        yield {
            "apiVersion": f"{_GROUP}/{kueue.api}",
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": dns_label(name)},
            "value": min(qos.priority, _INT32),
            "description": qos.description or name,
        }
    shares = {name: guaranteed(one.limits.grp_tres, cluster) for name, one in tenants.accounts.items()}
    yield from _cohorts(kueue, tenants, shares, there)
    for name in tenants.accounts:
        yield _cluster_queue(options, kueue, tenants, name, shares)
        yield {
            "apiVersion": f"{_GROUP}/{kueue.api}",
            "kind": "LocalQueue",
            "metadata": {"name": _QUEUE, "namespace": namespace(options, name)},
            "spec": {"clusterQueue": dns_label(name)},
        }


def _cohorts(
    kueue: Kueue, tenants: Tenants, shares: Mapping[str, dict[str, Amounts]], there: dict[str, Amounts]
) -> Iterator[Object]:
    """The root has what no account is guaranteed; an account with others below it is their cohort."""
    tops = [_below(tenants, shares, name) for name in children(tenants.accounts, ROOT)]
    yield _object(kueue, "Cohort", ROOT, {"resourceGroups": _groups(minus(there, tops), None)})
    for name, account in tenants.accounts.items():
        if below := children(tenants.accounts, name):
            rest = minus(shares[name], [_below(tenants, shares, child) for child in below])
            spec: dict[str, Any] = {
                "parentName": dns_label(account.parent),
                "resourceGroups": _groups(rest, None if kueue.borrowing else 0),
            }
            yield _object(kueue, "Cohort", dns_label(name), spec | _weight(kueue, tenants, name))


def _below(tenants: Tenants, shares: Mapping[str, dict[str, Amounts]], name: str) -> dict[str, Amounts]:
    """What an account and those below it are guaranteed: the larger of its share and the sum of theirs."""
    parts = [_below(tenants, shares, child) for child in children(tenants.accounts, name)]
    return {
        sku: {
            resource: max(amount, sum(part[sku][resource] for part in parts))
            for resource, amount in amounts.items()
        }
        for sku, amounts in shares[name].items()
    }


def _cluster_queue(
    options: KubernetesSchedulingOptions,
    kueue: Kueue,
    tenants: Tenants,
    name: str,
    shares: Mapping[str, dict[str, Amounts]],
) -> Object:
    """An account with others below it has its share in its cohort; its queue borrows from there."""
    parent = bool(children(tenants.accounts, name))
    own = minus(shares[name], [shares[name]]) if parent else shares[name]
    limit = 0 if not kueue.borrowing and not parent else None
    spec: dict[str, Any] = {
        "cohort" if kueue.api == "v1beta1" else "cohortName": dns_label(
            name if parent else tenants.accounts[name].parent
        ),
        "namespaceSelector": {"matchLabels": {"rackwright.dev/account": name}},
        "queueingStrategy": "BestEffortFIFO",
        "preemption": {
            "reclaimWithinCohort": "Any",
            "withinClusterQueue": "LowerPriority"
            if any(one.preempt for one in tenants.qos.values())
            else "Never",
        },
        "resourceGroups": _groups(own, limit),
    }
    return _object(kueue, "ClusterQueue", dns_label(name), spec | _weight(kueue, tenants, name))


def _weight(kueue: Kueue, tenants: Tenants, name: str) -> dict[str, Any]:
    return {"fairSharing": {"weight": str(tenants.accounts[name].fairshare)}} if kueue.fair_sharing else {}


def _groups(shares: Mapping[str, Amounts], borrowing: int | None) -> list[dict[str, Any]]:
    """One group: all flavors cover all resources, and one that a SKU lacks has none of it."""
    resources = sorted({resource for amounts in shares.values() for resource in amounts})
    flavors = [
        {
            "name": dns_label(sku),
            "resources": [_resource(one, amounts.get(one, 0), borrowing) for one in resources],
        }
        for sku, amounts in shares.items()
    ]
    return [{"coveredResources": resources, "flavors": flavors}] if flavors else []


def _resource(name: str, amount: int, borrowing: int | None) -> dict[str, Any]:
    found = {"name": name, "nominalQuota": f"{amount}Mi" if name == "memory" and amount else str(amount)}
    return found if borrowing is None else {**found, "borrowingLimit": str(borrowing)}


def _object(kueue: Kueue, kind: str, name: str, spec: dict[str, Any]) -> Object:
    return {"apiVersion": f"{_GROUP}/{kueue.api}", "kind": kind, "metadata": {"name": name}, "spec": spec}
