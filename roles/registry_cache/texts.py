"""The files of the registries."""

from __future__ import annotations

from collections.abc import Callable

from rackwright.model.cluster import Cluster
from rackwright.render import render
from rackwright.roles.registry_cache.options import RegistryCacheOptions

ETC = "/etc/docker/registry"
UNIT_FILE = "/etc/systemd/system/registry-cache@.service"
PACKAGED_UNIT = "docker-registry.service"
USER = "docker-registry"


def storage(name: str, options: RegistryCacheOptions) -> str:
    """Folder of a registry's layers."""
    return options.registries[name].storage or f"/var/lib/registry/{name}"


def conf_path(name: str) -> str:
    """Configuration of a registry."""
    return f"{ETC}/{name}.yml"


def unit(name: str) -> str:
    """Unit of a registry."""
    return f"registry-cache@{name}.service"


def url(name: str, cluster: Cluster, options: RegistryCacheOptions) -> str:
    """Where a registry answers."""
    address = cluster.management_address(cluster.primary)
    return f"{options.scheme}://{address}:{options.registries[name].port}"


def password_name(name: str) -> str:
    """Name of the secret a registry logs in with at its upstream."""
    return f"registry_{name.replace('-', '_')}_password"


def config_yml(
    name: str, cluster: Cluster, options: RegistryCacheOptions, secret: Callable[[str], str]
) -> str:
    """Settings of a registry; they hold secrets."""
    registry = options.registries[name]
    return render(
        "registry_cache/config.yml.j2",
        registry=registry,
        options=options,
        storage=storage(name, options),
        address=cluster.management_address(cluster.primary),
        http_secret=secret("registry_http_secret"),
        password=None if registry.username is None else secret(password_name(name)),
    )
