"""slurmd: one pod on each node, with all its GPUs, as objects of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rackwright.roles.slurm_on_kubernetes import pod, texts
from rackwright.roles.slurm_on_kubernetes.kinds import HOSTNAME, Kind, kinds, resources
from rackwright.roles.slurm_on_kubernetes.places import SLURMD, places, slurm_of, slurmd_nodes
from rackwright.roles.slurm_on_kubernetes.services import filesystem_volumes
from rackwright.workload.slurm.pods import ETC, PodNode

if TYPE_CHECKING:
    from rackwright.kubernetes.objects import Object
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions

_GRACE_SECONDS = 30


def objects(options: SlurmOnKubernetesOptions, cluster: Cluster) -> list[Object]:
    """A DaemonSet for each kind of node; on the pod network one for each node, whose pod has the node's name in DNS."""
    known = slurm_of(cluster).pod_nodes(cluster, places(options, cluster))
    found: list[Object] = [_service(options, slurm_of(cluster).slurmd_port)]
    if options.network == "pod":
        return [
            *found,
            *(_of_node(options, cluster, node, known[node.name]) for node in slurmd_nodes(cluster)),
        ]
    return [*found, *(_of_kind(options, cluster, kind) for kind in kinds(options, cluster))]


def _service(options: SlurmOnKubernetesOptions, port: int) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": pod.metadata(options, SLURMD, SLURMD),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": pod.labels(SLURMD),
            "ports": [{"name": SLURMD, "port": port, "targetPort": port, "protocol": "TCP"}],
        },
    }


def _of_kind(options: SlurmOnKubernetesOptions, cluster: Cluster, kind: Kind) -> Object:
    spec = {**_spec(options, cluster, kind.nodes, kind.offers), **kind.placement}
    return _daemon_set(options, cluster, f"{SLURMD}-{kind.name}", spec)


def _of_node(options: SlurmOnKubernetesOptions, cluster: Cluster, node: Node, offers: PodNode) -> Object:
    own = {"hostname": node.name, "subdomain": SLURMD, "nodeSelector": {HOSTNAME: node.name}}
    spec = {**_spec(options, cluster, (node,), offers), **own}
    return _daemon_set(options, cluster, f"{SLURMD}-{node.name}", spec)


def _daemon_set(
    options: SlurmOnKubernetesOptions, cluster: Cluster, name: str, spec: Mapping[str, Any]
) -> Object:
    labels = {**pod.labels(SLURMD), "rackwright.dev/set": name}
    template = pod.pod_template(options, cluster, SLURMD, spec)
    template["metadata"]["labels"] = labels
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": pod.metadata(options, name, SLURMD),
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "OnDelete"},  # a new pod ends the jobs of the old one
            "template": template,
        },
    }


def _spec(
    options: SlurmOnKubernetesOptions, cluster: Cluster, nodes: Sequence[Node], offers: PodNode
) -> dict[str, Any]:
    slurm, host, tmp = slurm_of(cluster), options.network == "host", texts.job_tmp(options, cluster)
    volumes, mounts = filesystem_volumes(nodes)
    name = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    simulated = [{"name": "SIMULATED_GPUS", "value": str(offers.gpus)}] if offers.simulated else []
    main = pod.container(
        options,
        cluster,
        SLURMD,
        "slurmd",
        [
            *pod.mounts(
                config=ETC,
                munge="/run/munge",
                users="/var/lib/extrausers",
                spool=slurm.spool_dir,
                shm="/dev/shm",
                **({"tmp": tmp} if tmp is not None else {}),
            ),
            *mounts,
        ],
        env=[name, *simulated],
        ports=[{"containerPort": slurm.slurmd_port, "name": SLURMD}],
        securityContext={"privileged": True},  # cgroups and mounts of jobs, RDMA devices
        readinessProbe=pod.port_answers(slurm.slurmd_port),
        resources=resources(options, offers),
    )
    return {
        "hostNetwork": host,
        "dnsPolicy": "ClusterFirstWithHostNet" if host else "ClusterFirst",
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "containers": [main, pod.munged(options, cluster)],
        "volumes": [
            pod.config_volume(options, cluster),
            pod.script_volume(),
            pod.user_volumes(cluster)[0],
            *pod.munge_volumes(),
            {"name": "spool", "emptyDir": {}},
            *([{"name": "tmp", "emptyDir": {}}] if tmp is not None else []),
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
            *volumes,
        ],
    }
