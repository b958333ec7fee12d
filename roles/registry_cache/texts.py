"""The files of the registries."""

from __future__ import annotations

from collections.abc import Callable

from rackwright.model.cluster import Cluster
from rackwright.render import render
from rackwright.roles.registry_cache.options import RegistryCacheOptions
from rackwright.secrets.hashed import bcrypt_hash

ETC = "/etc/docker/registry"
UNIT_FILE = "/etc/systemd/system/registry-cache@.service"
PACKAGED_UNIT = "docker-registry.service"
USER = "docker-registry"
_COST = 8
"""The registry hashes the password of each request: 15 ms of a core."""


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


def asks_for_login(name: str, options: RegistryCacheOptions) -> bool:
    """Whether a registry serves only users that log in."""
    registry = options.registries[name]
    return registry.auth is not None and registry.upstream is None


def tls_files(cluster: Cluster, options: RegistryCacheOptions) -> tuple[str, str] | None:
    """Certificate chain and key that the registries read; None with plain HTTP."""
    if options.tls_certificate is not None and options.tls_key is not None:
        return options.tls_certificate, options.tls_key
    return next(((one.chain, one.key) for one in options.certificates(cluster, cluster.primary)), None)


def htpasswd_path(name: str) -> str:
    """Who may log in to a registry."""
    return f"{ETC}/{name}.htpasswd"


def htpasswd(name: str, options: RegistryCacheOptions, secret: Callable[[str], str]) -> str | None:
    """The user of a registry of the site's own; None where it asks for no login.

    The registry takes bcrypt alone (distribution.github.io, "Configuring a registry", htpasswd, read 2026-11-23).
    """
    registry = options.registries[name]
    if registry.auth is None or not asks_for_login(name, options):
        return None
    digest = bcrypt_hash(
        secret(registry.auth.stored_as),
        salt_key=secret("registry_http_secret"),
        salt_of=f"{name} {registry.auth.user}",
        cost=_COST,
    )
    return f"{registry.auth.user}:{digest}\n"


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
        name=name,
        tls=tls_files(cluster, options),
        password=secret(registry.auth.stored_as) if registry.auth is not None and registry.upstream else None,
        htpasswd=htpasswd_path(name),
    )
