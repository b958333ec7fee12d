"""What the kubernetes role claims of the cluster as a whole, asked on the primary head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.kubernetes import control_plane, listed, objects_as_declared, some
from rackwright.kubernetes.commands import KUBECTL
from rackwright.model.ranges import fold
from rackwright.render import render
from rackwright.roles.kubernetes import cluster_objects, readings
from rackwright.roles.kubernetes.options import KubernetesOptions

_RESTARTS_MAX = 20
"""A static pod is restarted with every renewal of certificates and every reboot."""
_PROBE_SECONDS = 240
_NEIGHBOURS = 3
"""Pods that each pod asks, besides itself."""
CheckOf = CheckContext[KubernetesOptions]


def _nodes(context: CheckOf) -> str:
    there = {node["metadata"]["name"] for node in listed(context, "nodes")}
    declared = {node.name for node in context.cluster.running("kubernetes")}
    if missing := declared - there:
        fail(f"{fold(missing)} is not in the cluster")
    if more := there - declared:
        fail(f"{fold(more)} is in the cluster and not declared; remove it: kubectl delete node")
    return f"{len(there)} nodes"


def _system(context: CheckOf) -> str:
    pods = listed(context, "pods --namespace kube-system")
    if not pods:
        fail("kube-system has no pods")
    if wrong := readings.troubled(pods, _RESTARTS_MAX):
        fail(some(wrong))
    return f"{len(pods)} pods in kube-system are ready"


def _objects(context: CheckOf) -> str:
    objects = cluster_objects.objects(context.options, context.cluster)
    return objects_as_declared(context, "kubernetes", objects)


def _empty_control_plane(context: CheckOf) -> str:
    names = {node.name for node in context.options.control_planes(context.cluster)}
    if context.options.control_plane.runs_pods:
        return "pods of users may run there, as declared"
    wrong = [
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']} on {pod['spec']['nodeName']}"
        for pod in listed(context, "pods --all-namespaces")
        if pod.get("spec", {}).get("nodeName") in names and not _of_system(pod)
    ]
    if wrong:
        fail(f"pods of users on the control plane: {some(wrong)}")
    return "no pod of a user on the control plane"


def _of_system(pod: Mapping[str, Any]) -> bool:
    owners = pod["metadata"].get("ownerReferences", [])
    daemon = any(owner.get("kind") in ("DaemonSet", "Node") for owner in owners)
    return daemon or pod["metadata"]["namespace"] == "kube-system"


def _certificate(context: CheckOf) -> str:
    """The API as clients reach it, with a certificate of the cluster's own authority for that address."""
    endpoint = context.options.endpoint(context.cluster)
    command = f"curl --silent --show-error --max-time 10 --cacert /etc/kubernetes/pki/ca.crt https://{endpoint}/readyz"
    wrong = []
    for node in context.cluster.running("kubernetes"):
        result = context.on(node.name).run(command)
        if result.rc in (126, 127):
            raise Undetermined(f"{node.name} cannot run curl")
        if result.rc != 0 or result.stdout.strip() != "ok":
            wrong.append(f"{node.name}: {(result.stderr or result.stdout).strip()[:120]}")
    if wrong:
        fail(f"https://{endpoint} does not answer: {'; '.join(wrong[:3])}")
    return f"https://{endpoint} answers every node"


def _pods_meet(context: CheckOf) -> str:
    """A pod on every node that takes pods asks some others by address, and all of them by the names of their service."""
    options = context.options
    nodes = [
        node.name
        for node in context.cluster.running("kubernetes")
        if options.control_plane.runs_pods or not options.runs_control_plane(node)
    ]
    if not nodes:
        raise Undetermined("no node takes pods")
    script = render(
        "kubernetes/pods-meet.sh.j2",
        kubectl=KUBECTL,
        image=options.images.probe,
        nodes=nodes,
        domain=options.dns_domain,
        seconds=_PROBE_SECONDS // 3,
        neighbours=_NEIGHBOURS,
        retry_seconds=60,
    )
    result = control_plane(context).run("sh -c %s", script)
    lines = [line for line in result.stdout.splitlines() if line.strip()]
    if result.rc == 3:
        fail("; ".join(lines[:5]))
    if result.rc != 0 or not lines or not lines[-1].startswith("met "):
        raise Undetermined(f"the pods could not be asked: {(result.stderr or result.stdout).strip()[-200:]}")
    return f"{lines[-1]}, by address, service and DNS name"


CHECKS = (
    Check("every declared node is in the cluster", _nodes, scope="cluster", settle_seconds=60),
    Check("kube-system's pods are ready", _system, scope="cluster", settle_seconds=120),
    Check("the API answers every node at its address", _certificate, scope="cluster", settle_seconds=30),
    Check("Kubernetes' own objects are as declared", _objects, scope="cluster"),
    Check("no pod of a user runs on the control plane", _empty_control_plane, scope="cluster"),
    Check(
        "pods of every node reach each other, services and DNS",
        _pods_meet,
        scope="cluster",
        live=True,
        timeout_seconds=_PROBE_SECONDS,
    ),
)
