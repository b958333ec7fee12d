"""What the kubernetes role claims: of each node here; cluster_checks has the claims of the whole cluster."""

from __future__ import annotations

import re
from functools import partial
from shlex import quote
from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered, has_access, holds_secret_text
from rackwright.claims.kubernetes import control_plane
from rackwright.claims.packages import held_at
from rackwright.claims.units import runs, state_of
from rackwright.kubernetes.commands import AS_DECLARED, KUBECTL
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.roles.kubernetes import (
    cluster_checks,
    commands,
    etcd,
    kubeadm,
    kubelet,
    network,
    pki,
    readings,
    texts,
)
from rackwright.roles.kubernetes.options import KubernetesOptions
from rackwright.secrets.store import store_of

_KUBECTL = "kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout=20s"
_KERNEL = frozenset({Capability.KERNEL})


def _files(context: CheckContext[KubernetesOptions]) -> str:
    files = texts.node_files(context.options, context.cluster, context.node)
    files |= texts.control_plane_files(context.options, context.cluster, context.node)
    shown = {path: text for path, text in files.items() if texts.mode(path) != "600"}
    as_rendered(context, shown, {path: texts.mode(path) for path in shown})
    for path in sorted(path for path in files if texts.mode(path) == "600"):
        has_access(context, path, "600", "root", "root")
        holds_secret_text(context, path, files[path])
    return f"{len(files)} files are as declared"


def _packages(context: CheckContext[KubernetesOptions]) -> str:
    wanted = (
        texts.package(context.options, context.cluster, name) for name in ("kubeadm", "kubectl", "kubelet")
    )
    return held_at(context, tuple(wanted))


def _member(context: CheckContext[KubernetesOptions]) -> str:
    answer = context.output("sh -c %s", commands.membership(context.node)).strip()
    if answer != commands.MEMBER:
        fail(f"{context.node.name}: {answer or 'membership unknown'}")
    return "the node is a member of the cluster"


def _own(context: CheckContext[KubernetesOptions]) -> dict[str, Any]:
    found = context.json(f"{_KUBECTL} get node {quote(context.node.name)} -o json")
    if not isinstance(found, dict) or "status" not in found:
        raise Undetermined("kubectl printed no node")
    return found


def _ready(context: CheckContext[KubernetesOptions]) -> str:
    node = _own(context)
    problems = readings.unready(node)
    if problems:
        fail("; ".join(problems))
    return "Ready, without pressure"


def _version(context: CheckContext[KubernetesOptions]) -> str:
    info = _own(context)["status"].get("nodeInfo", {})
    found = info.get("kubeletVersion")
    if found is None:
        raise Undetermined("the node object names no kubelet version")
    if found != f"v{context.options.version}":
        fail(f"the kubelet is {found}; v{context.options.version} is declared")
    return f"kubelet {found}, {info.get('containerRuntimeVersion', 'runtime unknown')}"


def _labels(context: CheckContext[KubernetesOptions]) -> str:
    there = _own(context)["metadata"].get("labels", {})
    wanted = texts.labels(context.options, context.node)
    wrong = [
        f"{key}={there.get(key, '(missing)')} instead of {value}"
        for key, value in wanted.items()
        if there.get(key) != value
    ]
    strange = [key for key in there if key.startswith("rackwright.dev/") and key not in wanted]
    if wrong or strange:
        fail("; ".join([*wrong, *(f"{key} is not declared" for key in sorted(strange))]))
    return f"{len(wanted)} labels are as declared"


def _taints(context: CheckContext[KubernetesOptions]) -> str:
    there = readings.taints(_own(context))
    wanted = {one.text for one in kubeadm.taints(context.options, context.node)}
    if missing := sorted(wanted - there):
        fail(f"missing taints: {', '.join(missing)}")
    if more := sorted(there - wanted):
        fail(f"taints that are not declared: {', '.join(more)}")
    return f"taints: {', '.join(sorted(wanted)) or 'none'}"


def _capacity(context: CheckContext[KubernetesOptions]) -> str:
    """The kernel and firmware keep a few percent of the memory (as RealMemory of Slurm has it)."""
    status, sku = _own(context)["status"], context.node.sku
    cpus = readings.quantity(status.get("capacity", {}).get("cpu"))
    memory = readings.quantity(status.get("capacity", {}).get("memory"))
    if cpus is None or memory is None:
        raise Undetermined("the node object names no capacity")
    if cpus != sku.cpus:
        fail(f"{cpus:g} CPUs; SKU {sku.name} has {sku.cpus}")
    if memory < sku.memory_mib * 2**20 * 0.95:
        fail(f"{memory / 2**20:.0f} MiB of memory; SKU {sku.name} has {sku.memory_mib} MiB")
    return f"{cpus:g} CPUs, {memory / 2**30:.0f} GiB"


def _configuration(context: CheckContext[KubernetesOptions]) -> str:
    """What the running kubelet uses, whichever file it came from."""
    path = f"/api/v1/nodes/{context.node.name}/proxy/configz"
    command = f"{KUBECTL} --request-timeout=20s get --raw {quote(path)}"
    printed = context.json(command, host=control_plane(context))
    found = printed.get("kubeletconfig") if isinstance(printed, dict) else None
    if not isinstance(found, dict):
        raise Undetermined("configz has no kubeletconfig")
    wrong = readings.differing(kubelet.document(context.options, context.node), found)
    if wrong:
        fail(f"the kubelet runs with {'; '.join(wrong)}")
    return "the running kubelet has the declared configuration"


def _routes(context: CheckContext[KubernetesOptions]) -> str:
    lines = context.output(f"ip -o route show proto {network.PROTOCOL}").splitlines()
    there = {
        (match[1], match[2]) for line in lines if (match := re.match(r"(\S+) via (\S+) ", line)) is not None
    }
    text = network.routes(context.options, context.cluster, context.node)
    wanted = {(fields[0], fields[1]) for line in text.splitlines() if (fields := line.split())}
    if missing := sorted(wanted - there):
        fail(f"no route to the pods in {', '.join(net for net, _ in missing)}")
    if more := sorted(there - wanted):
        fail(f"routes that are not declared: {', '.join(net for net, _ in more)}")
    return f"routes to the pods of {len(wanted)} nodes"


def _manifests(context: CheckContext[KubernetesOptions]) -> str:
    command = commands.manifests(context.options, context.cluster, context.node)
    answer = context.output("sh -c %s", command).strip()
    if not answer:
        raise Undetermined("the manifests could not be compared")
    if answer != AS_DECLARED:
        fail("; ".join(answer.splitlines()))
    return "the manifests of the control plane are as kubeadm wrote them"


def _authorities(context: CheckContext[KubernetesOptions]) -> str:
    store = store_of(context.cluster)
    files = pki.files(context.cluster, lambda name: store.get(name).reveal())
    for one in files:
        holds_secret_text(context, one.path, one.text)
        has_access(context, one.path, "600" if one.secret else "644", "root", "root")
    return f"{len(files)} files of the cluster's authorities"


def _certificates(context: CheckContext[KubernetesOptions]) -> str:
    days = context.options.certificate_days_min
    ends = readings.certificate_ends(context.output("sh -c %s", readings.CERTIFICATES))
    now = int(context.output("date +%s", "%s").strip())
    if not ends:
        raise Undetermined("no certificate was found")
    late = [
        f"{name} expires in {(end - now) // 86400} days" for name, end in ends if end - now < days * 86400
    ]
    if late:
        fail("; ".join(late))
    return f"{len(ends)} certificates; the first expires in {min(end - now for _, end in ends) // 86400} days"


def _etcd(context: CheckContext[KubernetesOptions]) -> str:
    """etcd.io, "Hardware recommendations": it suffers where 99 % of the syncs take longer than 10 ms; not judged here."""
    printed = context.json("sh -c %s", f"{etcd.ETCDCTL} endpoint health --write-out=json")
    if not isinstance(printed, list) or not printed:
        raise Undetermined("etcdctl printed no endpoint")
    sick = [str(one.get("error") or "unhealthy") for one in printed if one.get("health") is not True]
    if sick:
        fail(f"etcd: {sick[0]}")
    return f"healthy, a write took {printed[0].get('took', 'an unknown time')}"


def _snapshot(context: CheckContext[KubernetesOptions]) -> str:
    given = context.options.snapshots
    command = (
        f"find {given.folder} -name '*.db' -newermt '-{2 * given.every_hours} hours' 2>/dev/null | wc -l"
    )
    number = context.output("sh -c %s", command).strip()
    timer = state_of(context, etcd.TIMER)
    if not timer.active:
        fail(f"{etcd.TIMER} is {timer.active_state}: no snapshots are made")
    if number == "0":
        fail(f"{given.folder} has no snapshot of the last {2 * given.every_hours} hours")
    return f"{number} snapshots in {given.folder} of the last {2 * given.every_hours} hours"


def _plane(node: Node, options: KubernetesOptions) -> bool:
    return options.runs_control_plane(node)


def _routed(node: Node, options: KubernetesOptions) -> bool:
    return options.network == "routes"


CHECKS = (
    Check("Kubernetes' files are as declared", _files),
    Check("Kubernetes' packages are held at their versions", _packages),
    Check("kubelet is running", partial(runs, unit=texts.KUBELET), settle_seconds=30),
    Check("the node is a member of the cluster", _member, settle_seconds=30),
    Check("the node is Ready", _ready, settle_seconds=90, live=True),
    Check("the kubelet has the declared version", _version),
    Check("the node's labels are as declared", _labels),
    Check("the node's taints are as declared", _taints),
    Check("the node has the SKU's CPUs and memory", _capacity, needs=_KERNEL),
    Check("the running kubelet has the declared configuration", _configuration, settle_seconds=20),
    Check("routes lead to the pods of every node", _routes, applies=_routed),
    Check("the control plane's manifests are unchanged", _manifests, applies=_plane),
    Check("the cluster's authorities are those of the secrets store", _authorities, applies=_plane),
    Check("no certificate is about to expire", _certificates, applies=_plane),
    Check("etcd is healthy", _etcd, applies=_plane, settle_seconds=30),
    Check("etcd's snapshots are recent", _snapshot, applies=_plane),
    *cluster_checks.CHECKS,
)
