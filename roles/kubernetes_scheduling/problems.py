"""Mistakes of the kubernetes_scheduling role, and what Kubernetes keeps differently from Slurm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackwright.documents.nearest import suggest
from rackwright.kubernetes.gpu_names import GPU
from rackwright.model.interfaces import RunsKubernetes
from rackwright.model.kubernetes_offers import AppliesAddons
from rackwright.roles.kubernetes_scheduling.shares import capacity, gpu_types, guaranteed
from rackwright.roles.kubernetes_scheduling.tenants import (
    ROOT,
    Tenants,
    children,
    dns_label,
    namespace,
    tenants_of,
)

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster
    from rackwright.roles.kubernetes_scheduling.options import KubernetesSchedulingOptions

Problem = tuple[str, str, str | None]
_PRIORITY_MAX = 1_000_000_000
"""Higher values are the system's own classes (kubernetes.io, Pod Priority and Preemption)."""
_RESERVED = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})


def problems_of(options: KubernetesSchedulingOptions, cluster: Cluster) -> Iterator[Problem]:
    """Every mistake."""
    if cluster.primary.offers(RunsKubernetes) is None:
        yield (
            "",
            "The role kubernetes_scheduling needs Kubernetes on the primary head.",
            "add the role kubernetes",
        )
        return
    tenants = tenants_of(options, cluster)
    if not tenants.accounts:
        yield (
            "accounts",
            "No account is declared, neither here nor in the role slurm.",
            "e.g. `accounts: {research: {}}`",
        )
        return
    yield from _tree(tenants)
    yield from _names(options, tenants)
    yield from _users(options, tenants)
    yield from _priorities(options, tenants)
    if options.kueue is not None:
        yield from _kueue(options, cluster, tenants)


def _tree(tenants: Tenants) -> Iterator[Problem]:
    for name, account in tenants.accounts.items():
        path = f"accounts.{name}.parent"
        if account.parent != ROOT and account.parent not in tenants.accounts:
            yield (
                path,
                f"Account {account.parent} is not declared.",
                suggest(account.parent, tenants.accounts, what="accounts"),
            )
            continue
        seen, above = {name}, account.parent
        while above in tenants.accounts and above not in seen:
            seen.add(above)
            above = tenants.accounts[above].parent
        if above in seen:
            yield path, f"The account {name} is above itself.", None


def _names(options: KubernetesSchedulingOptions, tenants: Tenants) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for name in tenants.accounts:
        found = namespace(options, name)
        if found in _RESERVED or found.startswith("kube-"):
            yield (
                f"accounts.{name}",
                f"The namespace {found} belongs to Kubernetes.",
                "set `namespace_prefix`",
            )
        elif first.setdefault(found, name) != name:
            yield (
                f"accounts.{name}",
                f"The accounts {first[found]} and {name} have the same namespace {found}.",
                None,
            )
        if dns_label(name) == ROOT:
            yield f"accounts.{name}", "`root` is the top of the tree.", None
    classes: dict[str, str] = {}
    for name in tenants.qos:
        if classes.setdefault(dns_label(name), name) != name:
            yield (
                f"qos.{name}",
                f"The QOS {classes[dns_label(name)]} and {name} have the same PriorityClass.",
                None,
            )


def _users(options: KubernetesSchedulingOptions, tenants: Tenants) -> Iterator[Problem]:
    for name, user in tenants.users.items():
        for account in (user.default_account, *user.accounts):
            if account not in tenants.accounts:
                yield (
                    f"users.{name}",
                    f"Account {account} is not declared.",
                    suggest(account, tenants.accounts, what="accounts"),
                )
    for account in options.groups:
        if account not in tenants.accounts:
            yield (
                f"groups.{account}",
                f"Account {account} is not declared.",
                suggest(account, tenants.accounts, what="accounts"),
            )
    for name, one in tenants.accounts.items():
        for qos in one.qos:
            if qos not in tenants.qos:
                yield (
                    f"accounts.{name}.qos",
                    f"QOS {qos} is not declared.",
                    suggest(qos, tenants.qos, what="QOS"),
                )
    if options.default_qos is not None and options.default_qos not in tenants.qos:
        yield (
            "default_qos",
            f"QOS {options.default_qos} is not declared.",
            suggest(options.default_qos, tenants.qos, what="QOS"),
        )


def _priorities(options: KubernetesSchedulingOptions, tenants: Tenants) -> Iterator[Problem]:
    for name, qos in tenants.qos.items():
        if qos.priority > _PRIORITY_MAX:
            yield f"qos.{name}.priority", f"The highest priority of a PriorityClass is {_PRIORITY_MAX}.", None
        for other in qos.preempt:
            if other not in tenants.qos:
                yield (
                    f"qos.{name}.preempt",
                    f"QOS {other} is not declared.",
                    suggest(other, tenants.qos, what="QOS"),
                )
            elif tenants.qos[other].priority >= qos.priority:
                yield (
                    f"qos.{name}.preempt",
                    f"{name} cannot preempt {other}, whose priority is not lower: {tenants.qos[other].priority}.",
                    f"give {name} a priority above it",
                )


def _kueue(options: KubernetesSchedulingOptions, cluster: Cluster, tenants: Tenants) -> Iterator[Problem]:
    addons = cluster.primary.offers(AppliesAddons)
    if addons is None or "kueue" not in addons.applied:
        yield (
            "kueue",
            "Nothing applies Kueue, which the queues need.",
            "add it to the role kubernetes_addons: `addons: {kueue: {}}`",
        )
    types = set(gpu_types(cluster).values())
    for name, account in tenants.accounts.items():
        for tres in account.limits.grp_tres:
            kind = tres.removeprefix("gres/gpu:")
            if kind != tres and kind not in types:
                path = f"accounts.{name}.limits.grp_tres"
                yield (
                    path,
                    f"No node of Kubernetes has GPUs of the type {kind}.",
                    suggest(kind, types, what="types"),
                )
    tops = {
        name: guaranteed(tenants.accounts[name].limits.grp_tres, cluster)
        for name in children(tenants.accounts, ROOT)
    }
    for sku, total in capacity(cluster).items():
        given = sum(share[sku].get(GPU, 0) for share in tops.values())
        if given > total.get(GPU, 0):
            yield (
                "accounts",
                f"The accounts are guaranteed {given} GPUs of {sku}, which has {total.get(GPU, 0)}.",
                "lower `limits.grp_tres` of some accounts",
            )


def warnings_of(options: KubernetesSchedulingOptions, cluster: Cluster) -> Iterator[Problem]:
    """What holds in Slurm and not here."""
    tenants = tenants_of(options, cluster)
    for name, account in tenants.accounts.items():
        if options.kueue is None and account.limits.grp_tres and children(tenants.accounts, name):
            yield (
                f"accounts.{name}.limits",
                f"A quota counts the namespace of {name} alone, and not the accounts below it.",
                "use `kueue`, or give the limits to the accounts below it",
            )
    for name, qos in tenants.qos.items():
        lower = {other for other, one in tenants.qos.items() if one.priority < qos.priority}
        if qos.preempt and (more := sorted(lower - set(qos.preempt))):
            yield (
                f"qos.{name}.preempt",
                f"Kubernetes lets {name} preempt {', '.join(more)} as well, since their priority is lower.",
                "name them too, or raise their priority",
            )
