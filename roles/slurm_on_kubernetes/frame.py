"""What surrounds the pods: namespace, files, priority, limits of disruption and of the network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rackwright.kubernetes.versions import disruption_budgets
from rackwright.roles.slurm_on_kubernetes import pod
from rackwright.roles.slurm_on_kubernetes.places import (
    ACCOUNTING,
    CONTROLLER,
    DATABASE,
    LOGIN,
    SLURMD,
    kubernetes_of,
    own_database,
    slurmd_nodes,
)
from rackwright.roles.slurm_on_kubernetes.texts import LABEL, config, scripts, users

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rackwright.kubernetes.objects import Object
    from rackwright.model.cluster import Cluster
    from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions

_PRIVILEGED = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}


def namespace(options: SlurmOnKubernetesOptions) -> Object:
    """Its pods may be privileged: slurmd makes cgroups and mounts for jobs."""
    metadata = {"name": options.namespace, "labels": _PRIVILEGED}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def objects(options: SlurmOnKubernetesOptions, cluster: Cluster) -> list[Object]:
    """All of them; the namespace is not among them."""
    maps = {
        pod.CONFIG: config(options, cluster),
        pod.SCRIPTS: scripts(options, cluster),
        pod.USERS: users(cluster),
    }
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": pod.PRIORITY_CLASS},
            "value": options.priority,
            "description": "Slurm's daemons",
        },
        *(config_map(options, name, data) for name, data in maps.items()),
        _budget(options, cluster),
        *_policies(options, cluster),
    ]


def config_map(options: SlurmOnKubernetesOptions, name: str, data: Mapping[str, str]) -> Object:
    """Files by name."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": pod.metadata(options, name),
        "data": dict(data),
    }


def _budget(options: SlurmOnKubernetesOptions, cluster: Cluster) -> Object:
    """No slurmd is evicted: its jobs would end. A number, since pods of a DaemonSet have no scale to take a share of."""
    return {
        "apiVersion": disruption_budgets(kubernetes_of(cluster).version),
        "kind": "PodDisruptionBudget",
        "metadata": pod.metadata(options, SLURMD),
        "spec": {
            "minAvailable": len(slurmd_nodes(cluster)),
            "selector": {"matchLabels": pod.labels(SLURMD)},
        },
    }


def _policies(options: SlurmOnKubernetesOptions, cluster: Cluster) -> list[Object]:
    """Slurm's pods talk to each other, the database to slurmdbd alone; users reach the login pod."""
    slurm: list[dict[str, Any]] = [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "slurm"}}}]
    if options.network == "host":  # pods on the node's network come from its addresses
        slurm.append({"ipBlock": {"cidr": str(cluster.management.cidr)}})
    found = [
        _policy(options, "daemons", [CONTROLLER, ACCOUNTING, SLURMD, LOGIN], [{"from": slurm}]),
    ]
    if own_database(cluster):
        peer = {"podSelector": {"matchLabels": pod.labels(ACCOUNTING)}}
        found.append(_policy(options, DATABASE, [DATABASE], [{"from": [peer]}]))
    if options.login.enabled:
        ssh = {"ports": [{"port": options.login.port, "protocol": "TCP"}]}
        found.append(_policy(options, LOGIN, [LOGIN], [ssh]))
    return found


def _policy(
    options: SlurmOnKubernetesOptions, name: str, daemons: list[str], ingress: list[dict[str, Any]]
) -> Object:
    selected = {"key": LABEL, "operator": "In", "values": daemons}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": pod.metadata(options, name),
        "spec": {
            "podSelector": {"matchExpressions": [selected]},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    }
