"""The objects of a step: a Secret with keys and scripts, and one pod on each node, which all look alike.

The pods use the network of their nodes, so that MPI and RDMA see the interfaces that the burn-in is to measure, and `hostname`
is the node's. The first pod starts mpirun, which reaches the others by ssh, on a port of the step's own and with keys that
exist for this step alone. From Kubernetes 1.24 on, the pods are one Indexed Job; before, they are single pods made from the
same template (Indexed Jobs: alpha in 1.21, stable in 1.24; kubernetes.io, read 2026-11-28).
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rackwright.errors import WorkloadError
from rackwright.kubernetes.objects import MANAGED_BY, Object
from rackwright.model.cluster import Cluster, Node
from rackwright.model.types import Platform
from rackwright.render import render
from rackwright.workload.exit_line import ExitLine
from rackwright.workload.kubernetes.output import DRAIN_LABEL
from rackwright.workload.protocol import JobStep

NAMESPACE = "rackwright-jobs"
STEP_LABEL = "rackwright.dev/step"
INDEX = "batch.kubernetes.io/job-completion-index"
"""Annotation of an Indexed Job's pods; single pods get it too."""
INDEXED_JOBS = (1, 24)
EXIT = ExitLine("mpirun")
FOLDER = "/run/rackwright"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AMD = "1002:"
"""The PCI vendor."""
_CPU_SHARE = 0.75
"""Of a node's allocatable CPUs, at most, is requested: DaemonSets have requests too."""


@dataclass(frozen=True)
class Placed:
    """What the objects depend on besides the step."""

    name: str
    """Of the step; its objects have it as their label."""
    image: str
    port: int
    """Of sshd, on each node."""
    start_seconds: int
    """How long the pods may take to start."""
    cpus: float
    """Allocatable on the smallest of the nodes."""
    taints: tuple[str, ...] = ()
    """Keys of taints that the site has set on these nodes."""


def namespace() -> Object:
    """Its pods share the network of their nodes, which PodSecurity allows in a privileged namespace alone."""
    labels = {MANAGED_BY: "rackwright", "pod-security.kubernetes.io/enforce": "privileged"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def objects(cluster: Cluster, step: JobStep, placed: Placed, release: tuple[int, int]) -> list[Object]:
    """All objects of a step."""
    nodes = [cluster.by_name[name] for name in step.nodes]
    return [_secret(cluster, nodes, step, placed), *_pods(cluster, nodes, step, placed, release)]


def _pods(
    cluster: Cluster, nodes: Sequence[Node], step: JobStep, placed: Placed, release: tuple[int, int]
) -> list[Object]:
    template = _template(cluster, nodes, step, placed)
    if release >= INDEXED_JOBS:
        return [_job(template, step, placed)]
    return [_pod(template, number, node.name, placed) for number, node in enumerate(nodes)]


def _job(template: dict[str, Any], step: JobStep, placed: Placed) -> Object:
    spec = {
        "completionMode": "Indexed",
        "completions": len(step.nodes),
        "parallelism": len(step.nodes),
        "backoffLimit": 0,
        "activeDeadlineSeconds": step.timeout_seconds + placed.start_seconds,
        "ttlSecondsAfterFinished": 3600,
        "template": template,
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(placed, placed.name), "spec": spec}


def _pod(template: dict[str, Any], number: int, node: str, placed: Placed) -> Object:
    """The template on one node, with what an Indexed Job would add."""
    container = template["spec"]["containers"][0]
    index = {"name": "JOB_COMPLETION_INDEX", "value": str(number)}
    spec = {
        **template["spec"],
        "affinity": {"nodeAffinity": _on((node,))},
        "containers": [{**container, "env": [*container["env"], index]}],
    }
    metadata = {**_metadata(placed, f"{placed.name}-{number}"), "annotations": {INDEX: str(number)}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _template(cluster: Cluster, nodes: Sequence[Node], step: JobStep, placed: Placed) -> dict[str, Any]:
    apart = {
        "labelSelector": {"matchLabels": {STEP_LABEL: placed.name}},
        "topologyKey": "kubernetes.io/hostname",
    }
    mounts = {"/dev/shm": {"emptyDir": {"medium": "Memory"}}, **_filesystems(nodes, step)}
    volumes = [{"name": f"mount-{number}", **volume} for number, volume in enumerate(mounts.values())]
    container = {
        "name": "step",
        "image": placed.image,
        "command": ["sh", f"{FOLDER}/node.sh"],
        "env": [],
        "resources": _resources(nodes[0], step, placed),
        "securityContext": _security(cluster, nodes),
        "volumeMounts": [
            {"name": "given", "mountPath": FOLDER, "readOnly": True},
            *({"name": f"mount-{number}", "mountPath": path} for number, path in enumerate(mounts)),
        ],
    }
    spec = {
        "restartPolicy": "Never",
        "hostNetwork": True,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "activeDeadlineSeconds": step.timeout_seconds + placed.start_seconds,
        "affinity": {
            "nodeAffinity": _on([node.name for node in nodes]),
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]},
        },
        "tolerations": [{"key": key, "operator": "Exists"} for key in placed.taints],
        "containers": [container],
        "volumes": [
            {"name": "given", "secret": {"secretName": placed.name, "defaultMode": 0o400}},
            *volumes,
        ],
    }
    return {"metadata": {"labels": _labels(placed)}, "spec": spec}


def _on(names: Sequence[str]) -> dict[str, Any]:
    """By name: the label kubernetes.io/hostname may differ from it."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in names
    ]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _resources(node: Node, step: JobStep, placed: Placed) -> dict[str, Any]:
    """GPUs as the device plugins of NVIDIA (MIG strategy `mixed`) and AMD name them; limits are requests too."""
    gpus = node.sku.gpus
    vendor = "amd.com" if gpus is not None and (gpus.pci_ids or ("",))[0].startswith(_AMD) else "nvidia.com"
    limits = {
        f"{vendor}/mig-{one.profile.replace('+', '.')}" if one.profile is not None else f"{vendor}/gpu": str(
            one.count
        )
        for one in step.gpus
    }
    wanted = step.tasks_per_node * step.cpus_per_task
    cpus = max(1, math.floor(min(wanted, placed.cpus * _CPU_SHARE)))
    return {"requests": {"cpu": str(cpus), **limits}, "limits": limits}


def _security(cluster: Cluster, nodes: Sequence[Node]) -> dict[str, Any]:
    """RDMA devices of the node, and memory that they may pin."""
    kinds = [cluster.networks[entry.network].kind for node in nodes for entry in node.addresses]
    metal = any(node.platform is not Platform.CONTAINER for node in nodes)
    if metal and any(kind.rdma for kind in kinds):
        return {"privileged": True}
    return {"capabilities": {"add": ["IPC_LOCK"]}}


def _filesystems(nodes: Sequence[Node], step: JobStep) -> dict[str, dict[str, Any]]:
    """The declared filesystems at their paths, for the storage bench."""
    if step.purpose != "storage":
        return {}
    paths = {one.path for one in nodes[0].filesystems}.intersection(
        *({one.path for one in node.filesystems} for node in nodes)
    )
    return {path: {"hostPath": {"path": path, "type": "Directory"}} for path in sorted(paths)}


def _secret(cluster: Cluster, nodes: Sequence[Node], step: JobStep, placed: Placed) -> Object:
    user, host = _key(), _key()
    hosts = [str(cluster.management_address(node)) for node in nodes]
    known = "".join(f"[{address}]:{placed.port} {host[1]}\n" for address in hosts)
    slots = "".join(f"{address} slots={step.tasks_per_node}\n" for address in hosts)
    data = {
        "id": user[0],
        "authorized_keys": f"{user[1]}\n",
        "host_key": host[0],
        "known_hosts": known,
        "hosts": slots,
        "filter.awk": EXIT.kept_by(step.output_filter or "{ print; fflush() }"),
        "ssh_config": render("kubernetes_step/ssh_config.j2", folder=FOLDER, port=placed.port),
        "sshd_config": render("kubernetes_step/sshd_config.j2", folder=FOLDER, port=placed.port),
        "node.sh": render("kubernetes_step/node.sh.j2", folder=FOLDER),
        "launch.sh": render(
            "kubernetes_step/launch.sh.j2",
            folder=FOLDER,
            start_seconds=placed.start_seconds,
            seconds=step.timeout_seconds,
            ranks=len(nodes) * step.tasks_per_node,
            tasks=step.tasks_per_node,
            environment=_environment(cluster, step),
            command=shlex.join(step.command),
            exit_line=EXIT.echo,
        ),
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(placed, placed.name),
        "stringData": data,
    }


def _environment(cluster: Cluster, step: JobStep) -> Mapping[str, str]:
    """Quoted values by name. Without the networks, MPI would also try the bridges of pods, which reach no other node."""
    for variable in step.environment:
        if not _VARIABLE.fullmatch(variable):
            raise WorkloadError(f"{variable!r} is not a valid name of an environment variable.")
    networks = ",".join(str(network.cidr) for network in cluster.inner_networks)
    defaults = {
        "OMPI_MCA_oob_tcp_if_include": str(cluster.management.cidr),
        "PRTE_MCA_oob_tcp_if_include": str(cluster.management.cidr),
    }
    if not any(name.startswith("OMPI_MCA_btl_tcp_if_") for name in step.environment):
        defaults["OMPI_MCA_btl_tcp_if_include"] = networks
    return {name: shlex.quote(value) for name, value in sorted({**defaults, **step.environment}.items())}


def _key() -> tuple[str, str]:
    """A private key and its public half, as OpenSSH has them."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode()


def _metadata(placed: Placed, name: str) -> dict[str, Any]:
    return {"name": name, "namespace": NAMESPACE, "labels": _labels(placed)}


def _labels(placed: Placed) -> dict[str, str]:
    return {MANAGED_BY: "rackwright", STEP_LABEL: placed.name, DRAIN_LABEL: "wait"}
