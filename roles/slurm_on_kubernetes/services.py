"""slurmctld, slurmdbd, the database and the login pod, as objects of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rackwright.roles.slurm_on_kubernetes import pod, texts
from rackwright.roles.slurm_on_kubernetes.kinds import HOSTNAME
from rackwright.roles.slurm_on_kubernetes.places import (
    ACCOUNTING,
    CONTROLLER,
    DATABASE,
    LOGIN,
    own_database,
    slurm_of,
)
from rackwright.workload.slurm.pods import ETC

if TYPE_CHECKING:
    from rackwright.kubernetes.objects import Object
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions

_GRACE_SECONDS = 60
_ARCHIVE = "archive"
# both names of the control plane's taint: `master` until 1.24
TOLERATED = [
    {"key": f"node-role.kubernetes.io/{name}", "operator": "Exists", "effect": "NoSchedule"}
    for name in ("master", "control-plane")
]


def objects(options: SlurmOnKubernetesOptions, cluster: Cluster) -> list[Object]:
    """Controllers in the order in which they wait for each other, each with its service."""
    found: list[Object] = []
    if own_database(cluster):
        found += [_service(options, DATABASE, slurm_of(cluster).storage[1]), _database(options, cluster)]
    slurm = slurm_of(cluster)
    found += [_service(options, ACCOUNTING, slurm.slurmdbd_port), _slurmdbd(options, cluster)]
    found += [_service(options, CONTROLLER, slurm.slurmctld_port), _slurmctld(options, cluster)]
    if options.login.enabled:
        found += [_service(options, LOGIN, options.login.port), _login(options, cluster)]
    return found


def _service(options: SlurmOnKubernetesOptions, daemon: str, port: int) -> Object:
    """An address that stays when its pod is replaced: Slurm keeps addresses it has resolved."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": pod.metadata(options, daemon, daemon),
        "spec": {
            "publishNotReadyAddresses": True,
            "selector": pod.labels(daemon),
            "ports": [{"name": daemon, "port": port, "targetPort": port, "protocol": "TCP"}],
        },
    }


def _database(options: SlurmOnKubernetesOptions, cluster: Cluster) -> Object:
    _, port, _, _ = slurm_of(cluster).storage
    main = pod.container(
        options,
        cluster,
        DATABASE,
        "mariadb",
        pod.mounts(data="/var/lib/mysql", password="/secrets/database"),
        ports=[{"containerPort": port, "name": DATABASE}],
        readinessProbe=pod.command_succeeds("mariadb-admin", "--no-defaults", "ping"),
        resources={"requests": {"cpu": "100m", "memory": f"{options.volumes.buffer_pool_mib + 256}Mi"}},
    )
    volumes = [pod.script_volume(), pod.secret_volume("password", "slurm-database")]
    size = options.volumes.database_size
    return _stateful(options, cluster, DATABASE, [main], volumes, {"data": (size, "database")})


def _slurmdbd(options: SlurmOnKubernetesOptions, cluster: Cluster) -> Object:
    port, archive = slurm_of(cluster).slurmdbd_port, texts.archive(options, cluster)
    main = pod.container(
        options,
        cluster,
        ACCOUNTING,
        "slurmdbd",
        pod.mounts(
            config="/config/slurm",
            etc=ETC,
            munge="/run/munge",
            password="/secrets/database",
            users="/var/lib/extrausers",
            **({_ARCHIVE: archive} if archive is not None else {}),
        ),
        ports=[{"containerPort": port, "name": ACCOUNTING}],
        readinessProbe=pod.port_answers(port),
        resources={"requests": {"cpu": "50m", "memory": "128Mi"}},
    )
    volumes = [
        *_common(options, cluster),
        {"name": "etc", "emptyDir": {"medium": "Memory"}},
        pod.secret_volume("password", "slurm-database"),
    ]
    state = {_ARCHIVE: (options.volumes.state_size, "accounting")} if archive is not None else {}
    return _stateful(options, cluster, ACCOUNTING, [main, pod.munged(options, cluster)], volumes, state)


def _slurmctld(options: SlurmOnKubernetesOptions, cluster: Cluster) -> Object:
    slurm = slurm_of(cluster)
    main = pod.container(
        options,
        cluster,
        CONTROLLER,
        "slurmctld",
        pod.mounts(
            config=ETC,
            state=slurm.state_dir,
            munge="/run/munge",
            users="/var/lib/extrausers",
        ),
        ports=[{"containerPort": slurm.slurmctld_port, "name": CONTROLLER}],
        readinessProbe=pod.command_succeeds("sh", "-c", "scontrol ping | grep -q 'is UP'"),
        resources={"requests": {"cpu": "100m", "memory": "256Mi"}},
    )
    state = {"state": (options.volumes.state_size, "state")}
    both = [main, pod.munged(options, cluster)]
    return _stateful(options, cluster, CONTROLLER, both, _common(options, cluster), state)


def _common(options: SlurmOnKubernetesOptions, cluster: Cluster) -> list[dict[str, Any]]:
    users = pod.user_volumes(cluster)[:1]
    return [pod.config_volume(options, cluster), pod.script_volume(), *users, *pod.munge_volumes()]


def _stateful(
    options: SlurmOnKubernetesOptions,
    cluster: Cluster,
    daemon: str,
    containers: Sequence[Mapping[str, Any]],
    volumes: Sequence[Mapping[str, Any]],
    kept: Mapping[str, tuple[str, str]],
) -> Object:
    """One pod whose state is kept: a claim of the storage class, or a folder of the primary head.

    `kept`: size and folder by volume.
    """
    storage = options.volumes.storage_class
    spec: dict[str, Any] = {
        "serviceName": daemon,
        "replicas": 1,
        "selector": {"matchLabels": pod.labels(daemon)},
        "updateStrategy": {"type": "RollingUpdate"},
    }
    inner: dict[str, Any] = {
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "tolerations": TOLERATED,
        "containers": list(containers),
        "volumes": list(volumes),
    }
    if storage is None or not kept:
        inner["nodeSelector"] = {HOSTNAME: cluster.primary.name}
        inner["volumes"] = [*volumes, *(_folder(options, name, at) for name, (_, at) in kept.items())]
    else:
        spec["volumeClaimTemplates"] = [_claim(name, size, storage) for name, (size, _) in kept.items()]
    spec["template"] = pod.pod_template(options, cluster, daemon, inner)
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": pod.metadata(options, daemon, daemon),
        "spec": spec,
    }


def _folder(options: SlurmOnKubernetesOptions, name: str, below: str) -> dict[str, Any]:
    path = f"{options.volumes.folder}/{below}"
    return {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}


def _claim(name: str, size: str, storage: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage,
            "resources": {"requests": {"storage": size}},
        },
    }


def filesystem_volumes(nodes: Sequence[Node]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Volumes and mounts of declared filesystems that all these nodes mount, at their paths."""
    paths = [{one.path for one in node.filesystems} for node in nodes]
    shared = sorted(set.intersection(*paths)) if paths else []
    volumes = [{"name": f"shared-{i}", "hostPath": {"path": path}} for i, path in enumerate(shared)]
    mounts = [
        {"name": f"shared-{i}", "mountPath": path, "mountPropagation": "HostToContainer"}
        for i, path in enumerate(shared)
    ]
    return volumes, mounts


def _login(options: SlurmOnKubernetesOptions, cluster: Cluster) -> Object:
    volumes, mounts = filesystem_volumes((cluster.primary,))
    main = pod.container(
        options,
        cluster,
        LOGIN,
        "sshd",
        [
            *pod.mounts(
                config=ETC,
                munge="/run/munge",
                users="/var/lib/extrausers",
                keys="/config/users",
                host_key="/secrets/login",
            ),
            *mounts,
        ],
        ports=[{"containerPort": options.login.port, "name": "ssh"}],
        readinessProbe=pod.port_answers(options.login.port),
        resources={"requests": {"cpu": "50m", "memory": "128Mi"}},
    )
    host = options.network == "host"
    spec = {
        "hostNetwork": host,
        "dnsPolicy": "ClusterFirstWithHostNet" if host else "ClusterFirst",
        "nodeSelector": {HOSTNAME: cluster.primary.name},
        "tolerations": TOLERATED,
        "containers": [main, pod.munged(options, cluster)],
        "volumes": [
            pod.config_volume(options, cluster),
            pod.script_volume(),
            *pod.user_volumes(cluster),
            *pod.munge_volumes(),
            pod.secret_volume("host-key", "slurm-login"),
            *volumes,
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": pod.metadata(options, LOGIN, LOGIN),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},  # two cannot have the same port of the node
            "selector": {"matchLabels": pod.labels(LOGIN)},
            "template": pod.pod_template(options, cluster, LOGIN, spec),
        },
    }
