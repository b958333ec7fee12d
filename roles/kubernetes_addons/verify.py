"""Checks of the kubernetes_addons role."""

from __future__ import annotations

from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.kubernetes import listed, objects_as_declared, some
from rackwright.kubernetes.objects import Object
from rackwright.roles.kubernetes_addons.options import KubernetesAddonsOptions
from rackwright.roles.kubernetes_addons.sources import Unusable, objects_for

_CONTEXT = CheckContext[KubernetesAddonsOptions]
_READY = {
    "Deployment": ("spec.replicas", "status.readyReplicas"),
    "StatefulSet": ("spec.replicas", "status.readyReplicas"),
    "DaemonSet": ("status.desiredNumberScheduled", "status.numberReady"),
}
"""Kind to where its object has the number of pods that should be ready, and that are."""


def _declared(context: _CONTEXT) -> list[Object]:
    try:
        return objects_for(context.options, context.cluster)
    except Unusable as error:
        raise Undetermined(str(error)) from None


def _objects(context: _CONTEXT) -> str:
    return objects_as_declared(context, "kubernetes_addons", _declared(context))


def _workloads(context: _CONTEXT) -> str:
    wanted = [item for item in _declared(context) if item["kind"] in _READY]
    if not wanted:
        return "no add-on has pods"
    there = {
        (item.get("kind"), item["metadata"].get("namespace"), item["metadata"]["name"]): item
        for item in listed(context, "deployments,statefulsets,daemonsets --all-namespaces")
    }
    wrong = []
    for item in wanted:
        kind, metadata = str(item["kind"]), item["metadata"]
        name = f"{kind} {metadata['name']}"
        found = there.get((kind, metadata.get("namespace", "default"), metadata["name"]))
        if found is None:
            wrong.append(f"{name} does not exist")
            continue
        should, ready = (_at(found, path) for path in _READY[kind])
        if should is None:
            raise Undetermined(f"{name} has no number of pods yet")
        if (ready or 0) < should:
            wrong.append(f"{name} has {ready or 0} of {should} pods ready")
    if wrong:
        fail(some(wrong))
    return f"{len(wanted)} workloads"


def _at(item: dict[str, Any], path: str) -> int | None:
    found: Any = item
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, int) else None


def _definitions(context: _CONTEXT) -> str:
    wanted = {
        str(item["metadata"]["name"])
        for item in _declared(context)
        if item["kind"] == "CustomResourceDefinition"
    }
    if not wanted:
        return "no add-on defines kinds"
    there = {item["metadata"]["name"]: item for item in listed(context, "customresourcedefinitions")}
    wrong = [f"{name} is not defined" for name in sorted(wanted - there.keys())]
    for name in sorted(wanted & there.keys()):
        conditions = there[name].get("status", {}).get("conditions", [])
        if not any(one.get("type") == "Established" and one.get("status") == "True" for one in conditions):
            wrong.append(f"{name} is not established")
    if wrong:
        fail(some(wrong))
    return f"{len(wanted)} kinds"


CHECKS = (
    Check("add-ons are as declared", _objects, scope="cluster", timeout_seconds=120),
    Check("kinds of add-ons are established", _definitions, scope="cluster", settle_seconds=30),
    Check("pods of add-ons are ready", _workloads, scope="cluster", settle_seconds=180),
)
