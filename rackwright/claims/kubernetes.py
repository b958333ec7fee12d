"""Claims about the objects of a Kubernetes cluster, asked on its first control-plane node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rackwright.claims.check import CheckContext, TestinfraHost, Undetermined, fail
from rackwright.kubernetes.commands import AS_DECLARED, KUBECTL, compare
from rackwright.kubernetes.objects import Object
from rackwright.model.interfaces import RunsKubernetes
from rackwright.model.options import RoleOptions

_SHOWN = 5


def control_plane(context: CheckContext[RoleOptions]) -> TestinfraHost:
    """The node whose access to the API the checks use."""
    runs = context.node.offers(RunsKubernetes)
    if runs is None:
        raise Undetermined(f"{context.node.name} has no role that runs Kubernetes")
    planes = runs.control_planes(context.cluster)
    if not planes:
        raise Undetermined("the cluster has no control plane")
    return context.on(planes[0].name)


def listed(context: CheckContext[RoleOptions], what: str) -> list[dict[str, Any]]:
    """The items of `kubectl get WHAT`; raises Undetermined if it prints no list."""
    found = context.json(f"{KUBECTL} --request-timeout=30s get {what} -o json", host=control_plane(context))
    items = found.get("items") if isinstance(found, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Undetermined(f"`kubectl get {what}` printed no list")
    return items


def objects_as_declared(context: CheckContext[RoleOptions], role: str, objects: Sequence[Object]) -> str:
    """The API server finds no difference between a role's objects and the cluster's."""
    found = context.output("sh -c %s", compare(role, objects), host=control_plane(context)).strip()
    if not found:
        raise Undetermined("the API server did not compare the objects")
    if found != AS_DECLARED:
        fail(some(found.splitlines()))
    return f"{len(objects)} objects are as declared"


def some(wrong: Sequence[str]) -> str:
    """The first few of many faults, and how many more there are."""
    more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    return "; ".join(wrong[:_SHOWN]) + more
