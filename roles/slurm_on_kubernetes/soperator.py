"""Custom resources of Nebius' Soperator: SlurmCluster (slurm.nebius.ai/v1) and NodeSet (v1alpha1).

Soperator writes slurm.conf, names nodes `SET-0`, `SET-1` and so on, and shares one root file system, the jail,
between login nodes and workers: the site provides its volumes as claims named after the namespace. Sources:
config/crd/bases and internal/render of nebius/soperator at c238d993, read 2026-11-28.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rackwright.roles.slurm_on_kubernetes import pod
from rackwright.roles.slurm_on_kubernetes.kinds import HOSTNAME, Kind, kinds
from rackwright.roles.slurm_on_kubernetes.places import places, slurm_of
from rackwright.roles.slurm_on_kubernetes.services import TOLERATED
from rackwright.roles.slurm_on_kubernetes.texts import config
from rackwright.workload.slurm.pods import names_of

if TYPE_CHECKING:
    from rackwright.kubernetes.objects import Object
    from rackwright.model.cluster import Cluster
    from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions

CLUSTER_API, NODES_API = "slurm.nebius.ai/v1", "slurm.nebius.ai/v1alpha1"
VERSION = "5.0.0"
JAIL, SPOOL = "jail", "controller-spool"
_CONTROL, _NO_FILTER = "control-plane", "all"
# settings that have a field in its API, or that it writes (internal/render/common/configmap.go)
_ITS_OWN = frozenset(
    {
        *("AuthType", "CredType", "ClusterName", "SlurmUser", "SlurmdUser", "SlurmctldHost", "SlurmctldPort"),
        *("SlurmdPort", "StateSaveLocation", "SlurmdSpoolDir", "SlurmctldPidFile", "SlurmdPidFile"),
        *("AccountingStorageType", "AccountingStorageHost", "AccountingStoragePort", "Prolog", "Epilog"),
        *("NodeName", "PartitionName", "Include", "TopologyPlugin", "MailProg", "MpiDefault", "GresTypes"),
        *(
            "SelectType",
            "SelectTypeParameters",
            "TaskPlugin",
            "ProctrackType",
            "SlurmctldDebug",
            "SlurmdDebug",
        ),
        *("MaxJobCount", "MessageTimeout", "CommunicationParameters", "JobContainerType", "NamespaceType"),
    }
)


def objects(options: SlurmOnKubernetesOptions, cluster: Cluster) -> list[Object]:
    """The cluster, and a node set for each kind of node."""
    return [
        _cluster(options, cluster),
        *(_node_set(options, cluster, kind) for kind in kinds(options, cluster)),
    ]


def _cluster(options: SlurmOnKubernetesOptions, cluster: Cluster) -> Object:
    return {
        "apiVersion": CLUSTER_API,
        "kind": "SlurmCluster",
        "metadata": pod.metadata(options, cluster.name),
        "spec": {
            "crVersion": VERSION,
            "cgroupVersion": "v2",
            "customSlurmConfig": custom_conf(options, cluster),
            "k8sNodeFilters": [
                {
                    "name": _CONTROL,
                    "nodeSelector": {HOSTNAME: cluster.primary.name},
                    "tolerations": TOLERATED,
                },
                {"name": _NO_FILTER},
            ],
            "mpiConfig": {"pmixEnv": ""},
            "partitionConfiguration": _partitions(options, cluster),
            "populateJail": {
                "image": _name(options, cluster, "populate_jail"),
                "imagePullPolicy": options.pull_policy,
                "k8sNodeFilterName": _CONTROL,
            },
            "secrets": {},
            "slurmNodes": _slurm_nodes(options, cluster),
            "volumeSources": [_claim(JAIL), _claim(SPOOL)],
        },
    }


def custom_conf(options: SlurmOnKubernetesOptions, cluster: Cluster) -> str:
    """The lines of slurm.conf that neither the operator nor another field of its resources sets."""
    lines = [
        line
        for line in config(options, cluster)["slurm.conf"].splitlines()
        if line and not line.startswith("#") and re.split(r"[= ]", line)[0] not in _ITS_OWN
    ]
    return "".join(f"{line}\n" for line in lines)


def _partitions(options: SlurmOnKubernetesOptions, cluster: Cluster) -> dict[str, Any]:
    parts = slurm_of(cluster).pod_partitions(cluster, places(options, cluster))
    known = kinds(options, cluster)
    return {
        "configType": "structured",
        "partitions": [
            {
                "name": name,
                "nodeSetRefs": [one.name for one in known if one.within(part.nodes)],
                "config": part.settings,
            }
            for name, part in parts.items()
        ],
    }


def _slurm_nodes(options: SlurmOnKubernetesOptions, cluster: Cluster) -> dict[str, Any]:
    munge, slurm = _container(options, cluster, "munge"), slurm_of(cluster)
    host, port, _, user = slurm.storage
    jail = {"volumeSourceName": JAIL}
    accounting = {
        "enabled": True,
        "k8sNodeFilterName": _CONTROL,
        "munge": munge,
        "slurmdbd": _container(options, cluster, "controller_slurmdbd", slurm.slurmdbd_port),
        "externalDB": {
            "enabled": True,
            "host": host,
            "port": port,
            "user": user,
            "passwordSecretKeyRef": {"name": "slurm-database", "key": "password"},
        },
    }
    controller = {
        "k8sNodeFilterName": _CONTROL,
        "munge": munge,
        "slurmctld": _container(options, cluster, "controller_slurmctld", slurm.slurmctld_port),
        "volumes": {"jail": jail, "spool": {"volumeSourceName": SPOOL}},
    }
    login: dict[str, Any] = {
        "k8sNodeFilterName": _CONTROL,
        "size": 1 if options.login.enabled else 0,
        "munge": munge,
        "sshd": _container(options, cluster, "login_sshd", options.login.port),
        "sshRootPublicKeys": [],
        "sshdServiceType": "ClusterIP",
        "volumes": {"jail": jail},
    }
    rest = {"enabled": options.rest_api, "k8sNodeFilterName": _CONTROL}
    if options.rest_api:
        rest["rest"] = _container(options, cluster, "slurmrestd")
    return {
        "accounting": accounting,
        "controller": controller,
        "exporter": {"enabled": False, "k8sNodeFilterName": _CONTROL},
        "login": login,
        "rest": rest,
    }


def _node_set(options: SlurmOnKubernetesOptions, cluster: Cluster, kind: Kind) -> Object:
    repository = f"{options.registry}/worker_slurmd"
    requests = dict(kind.resources["requests"])
    spec = {
        "replicas": len(kind.nodes),
        "gpu": {"enabled": kind.offers.gpus > 0 and not kind.offers.simulated},
        "munge": {
            "image": _parts(options, cluster, f"{options.registry}/munge"),
            "resources": {"cpu": "10m"},
        },
        "nodeConfig": {
            "features": [kind.name],
            "static": f"CPUs={kind.offers.cpus} RealMemory={kind.offers.memory_mib}"
            + (f" Gres={kind.offers.gres}" if kind.offers.gres else ""),
        },
        "slurmd": {
            "image": _parts(options, cluster, repository),
            "port": slurm_of(cluster).slurmd_port,
            "resources": {"memory": f"{kind.offers.memory_mib}Mi", **requests},
            "volumes": {
                "jail": {"persistentVolumeClaim": {"claimName": JAIL}},
                "spool": {"emptyDir": {}},
            },
        },
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "updateStrategy": "slurmAwareRollingUpdate",
        **kind.placement,
    }
    return {
        "apiVersion": NODES_API,
        "kind": "NodeSet",
        "metadata": pod.metadata(options, kind.name),
        "spec": {"clusterName": cluster.name, **spec},
    }


def _container(
    options: SlurmOnKubernetesOptions, cluster: Cluster, name: str, port: int | None = None
) -> dict[str, Any]:
    found = {"image": _name(options, cluster, name), "imagePullPolicy": options.pull_policy}
    return {**found, **({"port": port} if port is not None else {})}


def _parts(options: SlurmOnKubernetesOptions, cluster: Cluster, repository: str) -> dict[str, str]:
    return {"repository": repository, "tag": _tag(options, cluster), "pullPolicy": options.pull_policy}


def _name(options: SlurmOnKubernetesOptions, cluster: Cluster, name: str) -> str:
    return f"{options.registry}/{name}:{_tag(options, cluster)}"


def _tag(options: SlurmOnKubernetesOptions, cluster: Cluster) -> str:
    return options.operator_tag or f"{VERSION}-slurm{names_of(slurm_of(cluster).pod_release(cluster))}"


def _claim(name: str) -> dict[str, Any]:
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}
