"""Options of the registry_cache role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Self

from pydantic import Field, model_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.strings import NodePath, Slug
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
    username: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9@._-]+$",
        description="Login at the upstream; its password is the secret `registry_<name>_password` of the store.",
    )
    storage: NodePath | None = Field(
        default=None, description="Where layers are kept. None: a folder of its name in /var/lib/registry."
    )
    delete: bool = Field(
        default=True, description="Images may be deleted; a cache needs it to drop what is old."
    )

    @model_validator(mode="after")
    def _login_needs_upstream(self) -> Self:
        if self.username is not None and self.upstream is None:
            raise ValueError("A username is a login at the upstream, and there is no upstream.")
        return self


class RegistryCacheOptions(RoleOptions):
    """Registries on the primary head; other heads are left alone."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD})
    secrets: ClassVar[tuple[str, ...]] = ("registry_http_secret",)

    registries: dict[Slug, Registry] = Field(
        default={"docker-io": Registry(port=5000, upstream="https://registry-1.docker.io")},
        min_length=1,
        description="Registries by name: lower-case words joined by `-`.",
    )
    tls_certificate: NodePath | None = Field(
        default=None, description="Certificate chain on the head, PEM. None: plain HTTP."
    )
    tls_key: NodePath | None = Field(default=None, description="Its key, readable by docker-registry.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        ports: dict[int, str] = {}
        for name, registry in self.registries.items():
            first = ports.setdefault(registry.port, name)
            if first != name:
                raise ValueError(f"The registries {first} and {name} have the same port {registry.port}.")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key are given together or not at all.")
        return self

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
