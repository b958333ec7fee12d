"""Parts of pods: containers with their start script, volumes, probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rackwright.roles.slurm_on_kubernetes.places import domain
from rackwright.roles.slurm_on_kubernetes.texts import LABEL, TEMPLATE, config, template, users

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster
    from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions

CONFIG, SCRIPTS, USERS = "slurm-config", "slurm-scripts", "slurm-users"
PRIORITY_CLASS = "slurm"
_EXECUTABLE = 0o755
_PRIVATE = 0o400


def labels(daemon: str) -> dict[str, str]:
    """By which services and controllers find the pods of a daemon."""
    return {"app.kubernetes.io/name": "slurm", LABEL: daemon}


def metadata(options: SlurmOnKubernetesOptions, name: str, daemon: str | None = None) -> dict[str, Any]:
    """Of an object of the namespace."""
    found: dict[str, Any] = {"name": name, "namespace": options.namespace}
    return {**found, "labels": labels(daemon)} if daemon is not None else found


def script_volume() -> dict[str, Any]:
    """start.sh, sshd_config."""
    return {"name": "scripts", "configMap": {"name": SCRIPTS, "defaultMode": _EXECUTABLE}}


def config_volume(options: SlurmOnKubernetesOptions, cluster: Cluster) -> dict[str, Any]:
    """Slurm's files; prolog.sh and epilog.sh may be run."""
    items = [
        {"key": name, "path": name, "mode": _EXECUTABLE if name.endswith(".sh") else 0o644}
        for name in sorted(config(options, cluster))
    ]
    return {"name": "config", "configMap": {"name": CONFIG, "items": items}}


def secret_volume(name: str, secret: str) -> dict[str, Any]:
    """A secret as files that root alone can read."""
    return {"name": name, "secret": {"secretName": secret, "defaultMode": _PRIVATE}}


def user_volumes(cluster: Cluster) -> list[dict[str, Any]]:
    """Declared users, for the name service and for sshd."""
    keys = [{"key": name, "path": name} for name in sorted(users(cluster))]
    accounts = [one for one in keys if not one["key"].startswith("keys.")]
    return [
        {"name": "users", "configMap": {"name": USERS, "items": accounts}},
        {"name": "keys", "configMap": {"name": USERS, "items": keys}},
    ]


def mounts(**paths: str) -> list[dict[str, Any]]:
    """Volumes by name (`_` for `-`) at their paths; what comes from the API server is read-only anyway."""
    return [{"name": name.replace("_", "-"), "mountPath": path} for name, path in paths.items()]


def container(
    options: SlurmOnKubernetesOptions,
    cluster: Cluster,
    name: str,
    program: str,
    mounted: Sequence[Mapping[str, Any]],
    **more: Any,  # noqa: ANN401 - fields of the API
) -> dict[str, Any]:
    """A container of the image that runs `start.sh PROGRAM`."""
    return {
        "name": name,
        "image": options.reference(cluster),
        "imagePullPolicy": options.pull_policy,
        "command": ["/bin/sh", "/config/scripts/start.sh", program],
        "volumeMounts": [*mounts(scripts="/config/scripts"), *mounted],
        **more,
    }


def munged(options: SlurmOnKubernetesOptions, cluster: Cluster) -> dict[str, Any]:
    """The sidecar of every daemon that proves who it is."""
    probe = {"exec": {"command": ["sh", "-c", "munge -n -t 10 | unmunge -n"]}, "timeoutSeconds": 10}
    return container(
        options,
        cluster,
        "munged",
        "munged",
        mounts(munge="/run/munge", munge_key="/secrets/munge"),
        readinessProbe={**probe, "periodSeconds": 20},
        livenessProbe={**probe, "periodSeconds": 60, "failureThreshold": 5},
        resources={"requests": {"cpu": "10m", "memory": "16Mi"}},
    )


def munge_volumes() -> list[dict[str, Any]]:
    """The socket's folder, shared by the containers of a pod, and the key."""
    return [{"name": "munge", "emptyDir": {}}, secret_volume("munge-key", "munge")]


def port_answers(port: int) -> dict[str, Any]:
    """Readiness by a port."""
    return {"tcpSocket": {"port": port}, "periodSeconds": 10, "timeoutSeconds": 5}


def command_succeeds(*command: str) -> dict[str, Any]:
    """Readiness by a command."""
    return {"exec": {"command": list(command)}, "periodSeconds": 10, "timeoutSeconds": 15}


def pod_template(
    options: SlurmOnKubernetesOptions, cluster: Cluster, daemon: str, spec: Mapping[str, Any]
) -> dict[str, Any]:
    """The template of a daemon's pods; short names of services resolve in it."""
    searched = {"dnsConfig": {"searches": [f"{daemon}.{domain(options, cluster)}"]}}
    common = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "priorityClassName": PRIORITY_CLASS,
    }
    annotations = {TEMPLATE: template(options, cluster, daemon)}
    return {
        "metadata": {"labels": labels(daemon), "annotations": annotations},
        "spec": {**common, **(searched if daemon == "slurmd" else {}), **spec},
    }
