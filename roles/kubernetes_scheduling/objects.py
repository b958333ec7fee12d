"""Objects for accounts that every release since 1.20 knows, without any image. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rackwright.kubernetes.gpu_names import GPU
from rackwright.kubernetes.versions import enforces_pod_security
from rackwright.model.interfaces import RunsKubernetes
from rackwright.roles.kubernetes_scheduling import kueue_objects
from rackwright.roles.kubernetes_scheduling.tenants import (
    Tenants,
    allowed_qos,
    dns_label,
    members,
    namespace,
    tenants_of,
)

if TYPE_CHECKING:
    from rackwright.kubernetes.objects import Object
    from rackwright.model.cluster import Cluster
    from rackwright.roles.kubernetes_scheduling.options import KubernetesSchedulingOptions

ACCOUNT = "rackwright.dev/account"
_RBAC = "rbac.authorization.k8s.io"
_TRES = {"cpu": "requests.cpu", "mem": "requests.memory", "gres/gpu": f"requests.{GPU}"}


def objects(options: KubernetesSchedulingOptions, cluster: Cluster) -> list[Object]:
    """What is applied; namespaces first."""
    tenants = tenants_of(options, cluster)
    runs = cluster.primary.offers(RunsKubernetes)
    level = options.pod_security if runs is not None and enforces_pod_security(runs.version) else None
    found = [_namespace(options, name, level) for name in tenants.accounts]
    found += [_priority_class(options, tenants, name) for name in tenants.qos]
    for account in tenants.accounts:
        found += _of_account(options, tenants, account)
    if options.kueue is not None:
        found += kueue_objects.objects(options, options.kueue, cluster)
    return found


def _namespace(options: KubernetesSchedulingOptions, account: str, level: str | None) -> Object:
    labels = {ACCOUNT: account}
    if level is not None:
        labels["pod-security.kubernetes.io/enforce"] = level
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": namespace(options, account), "labels": labels},
    }


def _priority_class(options: KubernetesSchedulingOptions, tenants: Tenants, name: str) -> Object:
    """Preempting everything below it, or nothing: the API has no list (preemptionPolicy, on by default since 1.19)."""
    qos = tenants.qos[name]
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": dns_label(name)},
        "value": qos.priority,
        "globalDefault": name == options.default_qos,
        "preemptionPolicy": "PreemptLowerPriority" if qos.preempt else "Never",
        "description": qos.description or name,
    }


def _of_account(options: KubernetesSchedulingOptions, tenants: Tenants, account: str) -> Iterator[Object]:
    metadata = {"namespace": namespace(options, account)}
    yield from _quotas(options, tenants, account, metadata)
    yield {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "defaults", **metadata},
        "spec": {
            "limits": [
                {
                    "type": "Container",
                    "defaultRequest": {
                        "cpu": f"{options.default_cpu_millis}m",
                        "memory": f"{options.default_memory_mib}Mi",
                    },
                }
            ]
        },
    }
    yield from _access(options, tenants, account, metadata)
    if options.isolation:
        yield {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "own-account", **metadata},
            "spec": {
                "podSelector": {},
                "policyTypes": ["Ingress"],
                "ingress": [{"from": [{"podSelector": {}}]}],
            },
        }


def _quotas(
    options: KubernetesSchedulingOptions, tenants: Tenants, account: str, metadata: dict[str, Any]
) -> Iterator[Object]:
    hard = {} if options.kueue is not None else quota(tenants, account)  # Kueue's queues borrow beyond it
    if options.pods_max is not None:
        hard["pods"] = str(options.pods_max)
    if hard:
        yield {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "account", **metadata},
            "spec": {"hard": hard},
        }
    refused = sorted(dns_label(name) for name in set(tenants.qos) - allowed_qos(tenants, account))
    if refused:
        expression = {"scopeName": "PriorityClass", "operator": "In", "values": refused}
        yield {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "refused-qos", **metadata},
            "spec": {"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [expression]}},
        }


def quota(tenants: Tenants, account: str) -> dict[str, str]:
    """An account's limits as a quota has them; GPU types add up, since a quota does not distinguish them."""
    limits = tenants.accounts[account].limits.grp_tres
    hard = {
        _TRES[name]: f"{value}Mi" if name == "mem" else str(value)
        for name, value in limits.items()
        if name in _TRES
    }
    typed = [value for name, value in limits.items() if name.startswith("gres/gpu:")]
    if typed and "gres/gpu" not in limits:
        hard[_TRES["gres/gpu"]] = str(sum(typed))
    return hard


def _access(
    options: KubernetesSchedulingOptions, tenants: Tenants, account: str, metadata: dict[str, Any]
) -> Iterator[Object]:
    users = {
        "users": (
            "edit",
            [_user(options, name) for name in members(tenants, account)] + _groups(options, account),
        ),
        "operators": ("view", _with_rights(options, tenants, "operator")),
        "administrators": ("admin", _with_rights(options, tenants, "administrator")),
    }
    for name, (role, subjects) in users.items():
        if subjects:
            yield {
                "apiVersion": f"{_RBAC}/v1",
                "kind": "RoleBinding",
                "metadata": {"name": name, **metadata},
                "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
                "subjects": subjects,
            }


def _user(options: KubernetesSchedulingOptions, name: str) -> dict[str, str]:
    return {"apiGroup": _RBAC, "kind": "User", "name": f"{options.name_prefix}{name}"}


def _groups(options: KubernetesSchedulingOptions, account: str) -> list[dict[str, str]]:
    return [
        {"apiGroup": _RBAC, "kind": "Group", "name": f"{options.name_prefix}{name}"}
        for name in options.groups.get(account, ())
    ]


def _with_rights(options: KubernetesSchedulingOptions, tenants: Tenants, rights: str) -> list[dict[str, str]]:
    return [_user(options, name) for name, user in sorted(tenants.users.items()) if user.admin == rights]
