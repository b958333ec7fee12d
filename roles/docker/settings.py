"""daemon.json, and what docker takes of it while it runs."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from rackwright.boundary import Refused, read_json
from rackwright.model.cluster import Cluster, Node
from rackwright.osfamily.names import Names
from rackwright.render import render
from rackwright.roles.docker.options import DockerOptions

CONF = "/etc/docker/daemon.json"
DROP_IN = "/etc/systemd/system/docker.service.d/rackwright.conf"
LOGINS = "/root/.docker/config.json"
_HUB = MappingProxyType({"docker.io": "https://index.docker.io/v1/"})
"""docker's own name for its hub in this file (docs.docker.com/reference/cli/docker/login, read 2026-11-23)."""
STARTED = "/run/docker-started-with.json"
STARTED_READ = f"cat {STARTED}"
"""Shell: the settings the daemon was started with."""
UNIT = "docker.service"

_BY_RELOAD = frozenset(
    {
        "default-runtime",
        "features",
        "insecure-registries",
        "live-restore",
        "registry-mirrors",
        "runtimes",
    }
)
"""What moby's daemon/reload.go takes, and dockerd's manual under "Configuration reload behavior"; mirrors and
insecure registries were seen to be taken by 26.1 (2026-11)."""

_NOT_RESTORED = ("data-root", "default-address-pools", "exec-opts", "storage-driver")
"""docs.docker.com/engine/daemon/live-restore, "Live restore upon restart": with other options than it was
started with, the daemon does not find its containers again."""

_DOCKER_CE = Names(("docker-ce", "docker-ce-cli", "containerd.io"), UNIT)


def names(node: Node, options: DockerOptions) -> Names:
    """Packages and unit on this node."""
    if options.source == "docker":
        return _DOCKER_CE
    return Names(node.os.container_daemons["docker"], UNIT)


def declared(cluster: Cluster, node: Node, options: DockerOptions) -> dict[str, Any]:
    """daemon.json as data."""
    mirror = options.mirror(cluster)
    memlock = {"Name": "memlock", "Soft": options.memlock_bytes, "Hard": options.memlock_bytes}
    nofile = {"Name": "nofile", "Soft": options.nofile, "Hard": options.nofile}
    settings: dict[str, Any] = {
        "data-root": options.data_root,
        "default-address-pools": [
            {"base": str(pool.base), "size": pool.size} for pool in options.address_pools
        ],
        "default-runtime": options.default_runtime,
        "default-ulimits": {"memlock": memlock, "nofile": nofile},
        "exec-opts": [f"native.cgroupdriver={options.cgroup_driver}"],
        "features": {"cdi": has_cdi(node, options)},
        "insecure-registries": list(options.plain_http),
        "iptables": options.iptables,
        "live-restore": options.live_restore,
        "log-driver": options.log_driver,
        "registry-mirrors": [] if mirror is None else [mirror],
        "runtimes": {name: {"path": path} for name, path in options.runtimes.items()},
        "storage-driver": options.storage_driver,
    }
    if options.log_driver in ("json-file", "local"):
        settings["log-opts"] = {
            "max-file": str(options.log_max_files),
            "max-size": f"{options.log_max_size_mib}m",
        }
    return settings


def has_cdi(node: Node, options: DockerOptions) -> bool:
    """Whether devices are given to containers by CDI."""
    return options.cdi if options.cdi is not None else node.sku.gpus is not None


def daemon_json(cluster: Cluster, node: Node, options: DockerOptions) -> str:
    """/etc/docker/daemon.json."""
    return render("docker/daemon.json.j2", settings=declared(cluster, node, options))


def logins(options: DockerOptions, secret: Callable[[str], str]) -> str | None:
    """root's logins at registries; None without any."""
    return options.auth_json(secret, _HUB)


def needs_restart(started: str | None, settings: dict[str, Any]) -> bool:
    """Whether the daemon was started with something else than declared that only a start reads."""
    then = _read(started)
    return then is None or _by_start(then) != _by_start(settings)


def loses_containers(started: str | None, settings: dict[str, Any]) -> bool:
    """Whether a restart stops containers: without live-restore, or with it where options differ too much."""
    then = _read(started)
    restored = then is not None and bool(then.get("live-restore")) and bool(settings["live-restore"])
    return not restored or any((then or {}).get(key) != settings[key] for key in _NOT_RESTORED)


def _read(started: str | None) -> dict[str, Any] | None:
    try:
        then = read_json(started or "")
    except Refused:
        return None
    return then if isinstance(then, dict) else None


def _by_start(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in _BY_RELOAD}
