"""Checks of the kubernetes_scheduling role."""

from __future__ import annotations

from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, fail
from rackwright.claims.kubernetes import listed, objects_as_declared, some
from rackwright.model.cluster import Node
from rackwright.roles.kubernetes_scheduling.objects import ACCOUNT, objects
from rackwright.roles.kubernetes_scheduling.options import KubernetesSchedulingOptions
from rackwright.roles.kubernetes_scheduling.tenants import dns_label, tenants_of

_CONTEXT = CheckContext[KubernetesSchedulingOptions]
_SYSTEM = "system-"


def _objects(context: _CONTEXT) -> str:
    return objects_as_declared(context, "kubernetes_scheduling", objects(context.options, context.cluster))


def _quotas(context: _CONTEXT) -> str:
    """A quota counts once the controller has written its limits into its status."""
    declared = {
        (item["metadata"]["namespace"], item["metadata"]["name"])
        for item in objects(context.options, context.cluster)
        if item["kind"] == "ResourceQuota"
    }
    there = {_key(item): item for item in listed(context, "resourcequotas --all-namespaces")}
    wrong = []
    for key in sorted(declared):
        name = "/".join(key)
        if key not in there:
            wrong.append(f"the quota {name} does not exist")
            continue
        item = there[key]
        if item.get("status", {}).get("hard") != item.get("spec", {}).get("hard"):
            wrong.append(f"the quota {name} is not in force")
    if wrong:
        fail(some(wrong))
    return f"{len(declared)} quotas"


def _key(item: dict[str, Any]) -> tuple[str, str]:
    metadata = item.get("metadata", {})
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _priorities(context: _CONTEXT) -> str:
    """Another class with a higher value, or as everyone's default, would go before every QOS."""
    qos = tenants_of(context.options, context.cluster).qos
    own = {dns_label(name) for name in qos}
    highest = max((one.priority for one in qos.values()), default=0)
    items = listed(context, "priorityclasses")
    if not items:
        raise Undetermined("the API has no PriorityClass, not even the system's own")
    wrong = []
    for item in items:
        name, value = _key(item)[1], item.get("value")
        if name in own or name.startswith(_SYSTEM):
            continue
        if not isinstance(value, int):
            raise Undetermined(f"the PriorityClass {name} has no value")
        if value > highest:
            wrong.append(f"the PriorityClass {name} is above every QOS: {value}")
        if item.get("globalDefault") is True:
            wrong.append(f"the PriorityClass {name} is the default of all pods")
    if wrong:
        fail(some(wrong))
    return f"{len(own)} QOS"


def _former(context: _CONTEXT) -> str:
    """Apply deletes no namespace: what users have in it would go as well."""
    declared = set(tenants_of(context.options, context.cluster).accounts)
    items = listed(context, "namespaces")
    if not items:
        raise Undetermined("the API has no namespace")
    labelled = {_key(item)[1]: item.get("metadata", {}).get("labels", {}).get(ACCOUNT) for item in items}
    former = sorted(
        name for name, account in labelled.items() if account is not None and account not in declared
    )
    if former:
        raise Warned(
            f"{some(former)}: of accounts that are not declared any more; `kubectl delete namespace NAME` deletes what is in it"
        )
    return f"{len(declared)} accounts"


def _queues(context: _CONTEXT) -> str:
    """The condition Active, which Kueue sets on each."""
    wanted = {dns_label(name) for name in tenants_of(context.options, context.cluster).accounts}
    there = {_key(item)[1]: item for item in listed(context, "clusterqueues.kueue.x-k8s.io")}
    wrong = [f"the queue {name} does not exist" for name in sorted(wanted - there.keys())]
    for name in sorted(wanted & there.keys()):
        conditions = there[name].get("status", {}).get("conditions", [])
        active = next((one for one in conditions if one.get("type") == "Active"), None)
        if active is None:
            raise Undetermined(f"Kueue has not judged the queue {name} yet")
        if active.get("status") != "True":
            wrong.append(f"the queue {name} is not active: {active.get('message', active.get('reason', ''))}")
    if wrong:
        fail(some(wrong))
    return f"{len(wanted)} queues are active"


def _has_kueue(node: Node, options: KubernetesSchedulingOptions) -> bool:
    return options.kueue is not None


CHECKS = (
    Check("accounts in Kubernetes are as declared", _objects, scope="cluster"),
    Check("quotas of accounts are in force", _quotas, scope="cluster", settle_seconds=20),
    Check("no other PriorityClass goes before the QOS", _priorities, scope="cluster"),
    Check("namespaces of former accounts are gone", _former, scope="cluster"),
    Check("queues of accounts are active", _queues, scope="cluster", settle_seconds=60, applies=_has_kueue),
)
