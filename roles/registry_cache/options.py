"""Options of the registry_cache role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Self

from pydantic import Field, model_validator

from rackwright.containers import RegistryAuth
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import Listener, Listens, WritesUnitFiles
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.strings import NodePath, Slug
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole
from rackwright.osfamily.names import names


class Registry(Frozen):
    """One registry: a cache of another one, or one of the site's own."""

    port: int = Field(ge=1, le=65535, description="Port on the head's management address.")
    upstream: str | None = Field(
        default=None,
        pattern=r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?$",
        description="The registry it caches, e.g. https://registry-1.docker.io. None: images are pushed to it.",
    )
    plain_http: bool = Field(
        default=False, description="The upstream is reached by plain HTTP, which an http URL has to declare."
    )
    auth: RegistryAuth | None = Field(
        default=None,
        description="With an upstream: the login there, at registries that issue tokens (Docker Hub, nvcr.io, Harbor), "
        "which docker-registry 2.8 needs. Without: who may push and pull.",
    )
    anonymous: bool = Field(
        default=False,
        description="Without an upstream and without `auth`: every user of every node that reaches the port may push, "
        "replace and delete images.",
    )
    storage: NodePath | None = Field(
        default=None, description="Where layers are kept. None: a folder of its name in /var/lib/registry."
    )
    delete: bool = Field(
        default=True, description="Images may be deleted; a cache needs it to drop what is old."
    )

    @model_validator(mode="before")
    @classmethod
    def _moved(cls, given: object) -> object:
        if isinstance(given, dict) and "username" in given:
            raise mistake(
                "`username` is gone: a login names its password in the secrets store too.",
                "e.g. `auth: {user: robot, stored_as: registry_robot}`",
            )
        return given

    @model_validator(mode="after")
    def _says_who_may(self) -> Self:
        if self.upstream is None and self.auth is None and not self.anonymous:
            raise mistake(
                "Nothing says who may push to this registry.",
                "e.g. `auth: {user: ci, stored_as: registry_ci}`; `anonymous: true` lets everyone push",
            )
        if self.anonymous and (self.auth is not None or self.upstream is not None):
            raise mistake(
                "`anonymous` is for a registry without `auth` and without an upstream.", "remove it"
            )
        if self.plain_http is not (self.upstream or "").startswith("http://"):
            raise mistake(
                "`plain_http` is for an upstream with an http URL."
                if self.plain_http
                else "The upstream is reached by plain HTTP, where images can be changed on their way.",
                "remove it" if self.plain_http else "use its https URL, or declare it: `plain_http: true`",
            )
        return self


class RegistryCacheOptions(RoleOptions, Listens, WritesUnitFiles):
    """Registries on the primary head; other heads are left alone."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD})
    secrets: ClassVar[tuple[str, ...]] = ("registry_http_secret",)

    registries: dict[Slug, Registry] = Field(
        default={"docker-io": Registry(port=5000, upstream="https://registry-1.docker.io")},
        min_length=1,
        description="Registries by name: lower-case words joined by `-`.",
    )
    plain_http: bool = Field(
        default=False,
        description="The registries have no certificate: an attacker on the path can change images, and read passwords.",
    )
    tls_certificate: NodePath | None = Field(
        default=None, description="Certificate chain on the head, PEM. None: with `plain_http`."
    )
    tls_key: NodePath | None = Field(default=None, description="Its key, readable by docker-registry.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        ports: dict[int, str] = {}
        for name, registry in self.registries.items():
            first = ports.setdefault(registry.port, name)
            if first != name:
                raise ValueError(f"The registries {first} and {name} have the same port {registry.port}.")
        if self.tls_certificate is None and self.tls_key is None and not self.plain_http:
            raise mistake(
                "The registries have no certificate, so that images could be changed on their way.",
                "give `tls_certificate` and `tls_key`, or declare it: `plain_http: true`",
            )
        if self.plain_http and self.tls_certificate is not None:
            raise mistake("A registry with a certificate cannot use plain HTTP.", "remove `plain_http`")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key are given together or not at all.")
        return self

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """Passwords of the logins."""
        return tuple(one.auth.stored_as for one in self.registries.values() if one.auth is not None)

    def warnings(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Passwords that cross the network in the clear."""
        for name, one in self.registries.items():
            if one.auth is not None and (self.plain_http if one.upstream is None else one.plain_http):
                yield (
                    f"registries.{name}.auth",
                    f"The password of {one.auth.user} crosses the network in the clear.",
                    "give the registry a certificate, and leave out `plain_http`",
                )

    @property
    def scheme(self) -> str:
        """http or https."""
        return "http" if self.tls_certificate is None else "https"

    def runs_on(self, node: Node) -> bool:
        """On the primary head alone."""
        return node.primary

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """EL has no package; a mirror that points at the head and at none of its ports."""
        if not names(cluster.primary.family, "docker-registry").packages:
            yield (
                "",
                f"{cluster.primary.os} has no package docker-registry, so {cluster.primary.name} cannot run the cache.",
                "run the head on Debian or Ubuntu, or set `mirrors.containers` to a registry of the site",
            )
        name, _, port = (cluster.mirrors.containers or "").partition(":")
        here = {cluster.primary.name, cluster.primary.fqdn, str(cluster.management_address(cluster.primary))}
        caches = [registry.port for registry in self.registries.values() if registry.upstream is not None]
        if name in here and int(port or 443) not in caches:
            yield (
                "registries",
                f"mirrors.containers is {cluster.mirrors.containers}, and no cache listens there.",
                f"caches listen on {', '.join(map(str, caches)) or 'no port'}",
            )

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """One port for each registry."""
        ports = sorted(registry.port for registry in self.registries.values())
        return tuple(Listener("docker-registry", (port, port)) for port in ports)

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """The unit of each registry."""
        return ("/etc/systemd/system/registry-cache@.service",)
