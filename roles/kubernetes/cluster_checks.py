"""What the kubernetes role claims of the cluster as a whole, asked on the primary head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.kubernetes.commands import AS_DECLARED, compare
from rackwright.model.ranges import fold
from rackwright.render import render
from rackwright.roles.kubernetes import cluster_objects, readings
from rackwright.roles.kubernetes.options import KubernetesOptions

_KUBECTL = "kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=30s"
_RESTARTS_MAX = 20
"""A static pod is restarted with every renewal of certificates and every reboot."""
_PROBE_SECONDS = 150
CheckOf = CheckContext[KubernetesOptions]


def _list(context: CheckOf, what: str) -> dict[str, Any]:
    first = context.options.control_planes(context.cluster)[0]
    found = context.json(f"{_KUBECTL} get {what} -o json", host=context.on(first.name))
    if not isinstance(found, dict) or not isinstance(found.get("items"), list):
        raise Undetermined(f"`kubectl get {what}` printed no list")
    return found


def _nodes(context: CheckOf) -> str:
    there = {node["metadata"]["name"] for node in _list(context, "nodes")["items"]}
    declared = {node.name for node in context.cluster.running("kubernetes")}
    if missing := declared - there:
        fail(f"{fold(missing)} is not in the cluster")
    if more := there - declared:
        fail(f"{fold(more)} is in the cluster and not declared; remove it: kubectl delete node")
    return f"{len(there)} nodes"


def _system(context: CheckOf) -> str:
    pods = _list(context, "pods --namespace kube-system")
    if not pods["items"]:
        fail("kube-system has no pods")
    if wrong := readings.troubled(pods, _RESTARTS_MAX):
        fail("; ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""))
    return f"{len(pods['items'])} pods in kube-system are ready"


def _objects(context: CheckOf) -> str:
    objects = cluster_objects.objects(context.options, context.cluster)
    first = context.options.control_planes(context.cluster)[0]
    answer = context.output("sh -c %s", compare("kubernetes", objects), host=context.on(first.name)).strip()
    if not answer:
        raise Undetermined("the API server did not compare the objects")
    if answer != AS_DECLARED:
        fail("; ".join(answer.splitlines()[:5]))
    return f"{len(objects)} objects are as declared"


def _empty_control_plane(context: CheckOf) -> str:
    names = {node.name for node in context.options.control_planes(context.cluster)}
    if context.options.control_plane.runs_pods:
        return "pods of users may run there, as declared"
    wrong = [
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']} on {pod['spec']['nodeName']}"
        for pod in _list(context, "pods --all-namespaces")["items"]
        if pod.get("spec", {}).get("nodeName") in names and not _of_system(pod)
    ]
    if wrong:
        fail(f"pods of users on the control plane: {', '.join(wrong[:5])}")
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
    """A pod on every node that takes pods asks every other one: by address, by the name of its service, by DNS."""
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
        kubectl=_KUBECTL,
        image=options.probe_image,
        nodes=nodes,
        domain=options.dns_domain,
        seconds=_PROBE_SECONDS // 2,
    )
    result = context.on(options.control_planes(context.cluster)[0].name).run("sh -c %s", script)
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
