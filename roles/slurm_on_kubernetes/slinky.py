"""Custom resources of SchedMD's Slinky slurm-operator, API slinky.slurm.net/v1beta1.

The operator writes slurm.conf: names, ports, authentication and accounting; what this role adds are the other lines
(`extraConf`) and the files that it does not write. Sources: config/crd/bases and internal/builder/controllerbuilder of
SlinkyProject/slurm-operator at f2ed3fc5, read 2026-11-28.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rackwright.roles.slurm_on_kubernetes import pod
from rackwright.roles.slurm_on_kubernetes.kinds import Kind, kinds
from rackwright.roles.slurm_on_kubernetes.places import places, slurm_of
from rackwright.roles.slurm_on_kubernetes.texts import config
from rackwright.workload.slurm.pods import names_of

if TYPE_CHECKING:
    from rackwright.kubernetes.objects import Object
    from rackwright.model.cluster import Cluster
    from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions

API = "slinky.slurm.net/v1beta1"
OWN_FILES = "slurm-files"
SSSD = "slurm-sssd"
# settings that the operator writes, or that belong to its images
_ITS_OWN = frozenset(
    {
        *("AuthType", "CredType", "ClusterName", "SlurmUser", "SlurmdUser", "SlurmctldHost", "SlurmctldPort"),
        *("SlurmdPort", "StateSaveLocation", "SlurmdSpoolDir", "SlurmctldLogFile", "SlurmdLogFile"),
        *("AccountingStorageType", "AccountingStorageHost", "AccountingStoragePort", "Prolog", "Epilog"),
        *("SlurmctldPidFile", "SlurmdPidFile", "NodeName", "PartitionName", "Include", "TopologyPlugin"),
    }
)
_FILES = ("gres.conf", "cgroup.conf", "mpi.conf")


def objects(options: SlurmOnKubernetesOptions, cluster: Cluster) -> list[Object]:
    """Controller, accounting, one node set for each kind of node, the login pod, the REST API."""
    found: list[Object] = [
        _files(options, cluster),
        _accounting(options, cluster),
        _controller(options, cluster),
    ]
    found += [_node_set(options, cluster, kind) for kind in kinds(options, cluster)]
    if options.login.enabled:
        found.append(_login(options, cluster))
    if options.rest_api:
        spec = {
            "controllerRef": _reference(cluster),
            "replicas": 1,
            "slurmrestd": _image(options, cluster, "slurmrestd"),
        }
        found.append(_resource(options, "RestApi", cluster.name, spec))
    return found


def extra_conf(options: SlurmOnKubernetesOptions, cluster: Cluster) -> str:
    """The lines of slurm.conf that the operator leaves to the site, and partitions by kinds of nodes."""
    lines = [
        line
        for line in config(options, cluster)["slurm.conf"].splitlines()
        if line and not line.startswith("#") and re.split(r"[= ]", line)[0] not in _ITS_OWN
    ]
    known = kinds(options, cluster)
    for name, part in slurm_of(cluster).pod_partitions(cluster, places(options, cluster)).items():
        sets = ",".join(one.name for one in known if one.within(part.nodes))
        lines.append(f"PartitionName={name} Nodes={sets} {part.settings}")
    return "".join(f"{line}\n" for line in lines)


def _files(options: SlurmOnKubernetesOptions, cluster: Cluster) -> Object:
    files = config(options, cluster)
    data = {name: files[name] for name in _FILES if name in files}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": pod.metadata(options, OWN_FILES),
        "data": data,
    }


def _controller(options: SlurmOnKubernetesOptions, cluster: Cluster) -> Object:
    volumes = options.volumes
    storage = {"storageClassName": volumes.storage_class} if volumes.storage_class is not None else {}
    return _resource(
        options,
        "Controller",
        cluster.name,
        {
            "clusterName": cluster.name,
            "slurmKeyRef": {"name": "slurm-auth", "key": "slurm.key"},
            "jwtKeyRef": {"name": "slurm-jwt", "key": "jwt.key"},
            "accountingRef": {"name": cluster.name},
            "configFileRefs": [{"name": OWN_FILES}],
            "extraConf": extra_conf(options, cluster),
            "persistence": {
                "enabled": True,
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": volumes.state_size}},
                **storage,
            },
            "slurmctld": _image(options, cluster, "slurmctld"),
            "reconfigure": _image(options, cluster, "slurmctld"),
        },
    )


def _accounting(options: SlurmOnKubernetesOptions, cluster: Cluster) -> Object:
    host, port, database, user = slurm_of(cluster).storage
    lines = config(options, cluster)["slurmdbd.conf"].splitlines()
    kept = [line for line in lines if line.startswith(("Purge", "PrivateData"))]
    return _resource(
        options,
        "Accounting",
        cluster.name,
        {
            "slurmKeyRef": {"name": "slurm-auth", "key": "slurm.key"},
            "jwtKeyRef": {"name": "slurm-jwt", "key": "jwt.key"},
            "storageConfig": {
                "host": host,
                "port": port,
                "database": database,
                "username": user,
                "passwordKeyRef": {"name": "slurm-database", "key": "password"},
            },
            "extraConf": "".join(f"{line}\n" for line in kept),
            "slurmdbd": _image(options, cluster, "slurmdbd"),
        },
    )


def _node_set(options: SlurmOnKubernetesOptions, cluster: Cluster, kind: Kind) -> Object:
    host = options.network == "host"
    template = {
        "metadata": {"labels": pod.labels("slurmd")},
        "spec": {
            "hostNetwork": host,
            "dnsPolicy": "ClusterFirstWithHostNet" if host else "ClusterFirst",
            **kind.placement,
            "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        },
    }
    gres = [f"Gres={kind.offers.gres}"] if kind.offers.gres else []
    spec = {
        "controllerRef": _reference(cluster),
        "scalingMode": "DaemonSet",
        "partition": {"enabled": False},  # partitions are in the controller's extraConf
        "extraConf": " ".join([*gres, f"Features={kind.name}"]),
        "slurmd": {**_image(options, cluster, "slurmd"), "resources": kind.resources},
        "template": template,
        "updateStrategy": {"type": "OnDelete"},
        "workloadDisruptionProtection": True,
    }
    return _resource(options, "NodeSet", kind.name, spec)


def _login(options: SlurmOnKubernetesOptions, cluster: Cluster) -> Object:
    """Users come from the site's directory: SSSD reads a secret that the site makes, `slurm-sssd`."""
    spec = {
        "controllerRef": _reference(cluster),
        "replicas": 1,
        "login": _image(options, cluster, "login"),
        "sssdConfRef": {"name": SSSD, "key": "sssd.conf"},
        "service": {"port": options.login.port},
    }
    return _resource(options, "LoginSet", cluster.name, spec)


def _resource(options: SlurmOnKubernetesOptions, kind: str, name: str, spec: dict[str, Any]) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": pod.metadata(options, name), "spec": spec}


def _reference(cluster: Cluster) -> dict[str, str]:
    return {"name": cluster.name}


def _image(options: SlurmOnKubernetesOptions, cluster: Cluster, name: str) -> dict[str, str]:
    tag = options.operator_tag or names_of(slurm_of(cluster).pod_release(cluster))
    return {"image": f"{options.registry}/{name}:{tag}", "imagePullPolicy": options.pull_policy}
