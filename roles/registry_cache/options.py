"""Options of the registry_cache role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Self

from pydantic import Field, model_validator

from rackwright.containers import PullingOptions, RegistryAuth
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import WritesUnitFiles
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.services import (
    Certificate,
    FetchesFromOutside,
    IssuesCertificates,
    Listener,
    Listens,
    NeedsCertificates,
    ServesRegistries,
)
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
                "`username` was removed: a login also names its password in the secrets store.",
                "e.g. `auth: {user: robot, stored_as: registry_robot}`",
            )
        return given

    @model_validator(mode="after")
    def _says_who_may(self) -> Self:
        if self.upstream is None and self.auth is None and not self.anonymous:
            raise mistake(
                "Who may push to this registry is not declared.",
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
                else "The upstream is reached by plain HTTP, where images can be changed in transit.",
                "remove it" if self.plain_http else "use its https URL, or declare it: `plain_http: true`",
            )
        return self


class RegistryCacheOptions(
    RoleOptions, FetchesFromOutside, Listens, NeedsCertificates, ServesRegistries, WritesUnitFiles
):
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
        description="The registries have no certificate: an attacker on the path can change images, and read passwords. "
        "Not needed with the role site_ca.",
    )
    tls_certificate: NodePath | None = Field(
        default=None,
        description="Certificate chain on the head, PEM, which the site brings there. None: one of the role "
        "site_ca, unless `plain_http`.",
    )
    tls_key: NodePath | None = Field(default=None, description="Its key, readable by docker-registry.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        ports: dict[int, str] = {}
        for name, registry in self.registries.items():
            first = ports.setdefault(registry.port, name)
            if first != name:
                raise ValueError(f"The registries {first} and {name} have the same port {registry.port}.")
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
        """Passwords that cross the network in the clear, and a CA that goes unused or is not trusted."""
        if self.plain_http and cluster.primary.offers(IssuesCertificates) is not None:
            yield (
                "plain_http",
                "The registries use plain HTTP although the site's CA could give them a certificate.",
                "leave `plain_http` out here, and for these registries in the container runtimes",
            )
        yield from self._distrust(cluster)
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
        return "http" if self.plain_http else "https"

    @property
    def uses_site_ca(self) -> bool:
        """Whether its certificate is one of the site's CA."""
        return not self.plain_http and self.tls_certificate is None

    def certificates(self, cluster: Cluster, node: Node) -> tuple[Certificate, ...]:
        """One for all registries, which have one address."""
        if not self.uses_site_ca:
            return ()
        address = str(cluster.management_address(node))
        return (
            Certificate(
                name="registry",
                key="/etc/docker/registry/site-ca.key",
                chain="/etc/docker/registry/site-ca.crt",
                names=tuple(dict.fromkeys((node.fqdn, node.name, address))),
                group="docker-registry",
                serves=tuple(f"{address}:{one.port}" for one in self.registries.values()),
            ),
        )

    def registry_names(self, cluster: Cluster) -> tuple[str, ...]:
        """Each registry by each name that is in the certificate."""
        return tuple(
            f"{name}:{one.port}"
            for certificate in self.certificates(cluster, cluster.primary)
            for one in self.registries.values()
            for name in certificate.names
        )

    def _distrust(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Nodes that pull and do not trust the site's CA."""
        if not self.uses_site_ca:
            return
        for node in cluster.nodes:
            if node.offers(PullingOptions) is not None and node.offers(IssuesCertificates) is None:
                yield (
                    "",
                    (
                        f"{node.name} pulls images and does not run the role site_ca: it refuses these registries' "
                        "certificate unless its runtimes declare a `ca` for each."
                    ),
                    "run site_ca on every node",
                )
                return

    def runs_on(self, node: Node) -> bool:
        """On the primary head alone."""
        return node.primary

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """No certificate; EL has no package; a mirror that points at the head and at none of its ports."""
        if self.uses_site_ca and cluster.primary.offers(IssuesCertificates) is None:
            yield (
                "",
                "The registries have no certificate: images could be changed in transit.",
                "add the role `site_ca: {}`, give `tls_certificate` and `tls_key`, or declare it: `plain_http: true`",
            )
        if not names(cluster.primary.family, "docker-registry").packages:
            yield (
                "",
                f"{cluster.primary.os} has no docker-registry package, so {cluster.primary.name} cannot run the cache.",
                "run the head on Debian or Ubuntu, or set `mirrors.containers` to a registry of the site",
            )
        name, _, port = (cluster.mirrors.containers or "").partition(":")
        here = {cluster.primary.name, cluster.primary.fqdn, str(cluster.management_address(cluster.primary))}
        caches = [registry.port for registry in self.registries.values() if registry.upstream is not None]
        if name in here and int(port or 443) not in caches:
            yield (
                "registries",
                f"mirrors.containers is {cluster.mirrors.containers}, but no cache listens there.",
                f"caches listen on {', '.join(map(str, caches)) or 'no port'}",
            )

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """One port for each registry."""
        ports = sorted(registry.port for registry in self.registries.values())
        return tuple(Listener("docker-registry", (port, port)) for port in ports)

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """The unit of each registry."""
        return ("/etc/systemd/system/registry-cache@.service",)

    def fetching_units(self, node: Node) -> tuple[str, ...]:
        """Those of registries that cache another one."""
        return tuple(
            f"registry-cache@{name}.service"
            for name, one in self.registries.items()
            if one.upstream is not None
        )
