"""Options of the grafana role."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import ClassVar

from pydantic import Field

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import HoldsPackages, ReservesMemory, WritesUnitFiles
from rackwright.model.monitoring import (
    PASSWORD_SECRET,
    SERVER_SECRET,
    CollectsMetrics,
    ExposesMetrics,
    Scrape,
)
from rackwright.model.options import RoleOptions
from rackwright.model.package_archive import PackageArchive, PackageVersion
from rackwright.model.services import Certificate, IssuesCertificates, Listener, Listens, NeedsCertificates
from rackwright.model.types import NetworkPurpose, NodeRole
from rackwright.osfamily.names import Names, names
from rackwright.roles.grafana.access import Host, Ldap, Oidc

FOLDER = "/etc/grafana/rackwright"
ADMIN_SECRET, KEY_SECRET = "grafana_admin_password", "grafana_secret_key"
Problem = tuple[str, str, str | None]


class GrafanaOptions(
    RoleOptions, ExposesMetrics, Listens, NeedsCertificates, WritesUnitFiles, HoldsPackages, ReservesMemory
):
    """Grafana on the primary head, for the cluster's staff."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD})
    secrets: ClassVar[tuple[str, ...]] = (ADMIN_SECRET, KEY_SECRET, PASSWORD_SECRET, SERVER_SECRET)

    archive: PackageArchive | None = Field(
        default=None,
        description="Package source: Grafana's own archive, or the site's signed copy. None: an archive that nodes already have.",
    )
    version: PackageVersion | None = Field(
        default=None, description="Exact version of the package; held. None: the archive's newest."
    )
    port: int = Field(default=3000, ge=1, le=65535, description="TCP port.")
    hostname: Host | None = Field(
        default=None, description="Name that browsers use, which is in the certificate. None: the head's own."
    )
    external: bool = Field(
        default=False,
        description="Serve browsers on external networks too, not only on the management network.",
    )
    admin: str = Field(
        default="admin",
        pattern=r"^[a-z_][a-z0-9_-]{0,30}$",
        description="Login of the administrator; the password is the secret grafana_admin_password.",
    )
    oidc: Oidc | None = Field(default=None, description="Single sign-on of the cluster's staff.")
    ldap: Ldap | None = Field(default=None, description="Logins of the cluster's staff.")
    login_form: bool = Field(
        default=True, description="False: single sign-on alone; the administrator then uses the API."
    )
    plain_http: bool = Field(
        default=False,
        description="Passwords of its users cross the network in the clear. Not needed with the role site_ca.",
    )

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """Of the OIDC client and of the LDAP search user."""
        found = [self.oidc.stored_as] if self.oidc is not None else []
        return tuple(found + ([self.ldap.stored_as] if self.ldap is not None and self.ldap.bind_dn else []))

    def runs_on(self, node: Node) -> bool:
        """On the primary head alone."""
        return node.primary

    def names(self, node: Node) -> Names:
        """Package, unit, paths and user on a node's family."""
        return names(node.family, "grafana")

    def packages(self, node: Node) -> tuple[str, ...]:
        """The package, with its version where that is declared."""
        version = "" if self.version is None else f"={self.version}"
        return tuple(f"{name}{version}" for name in self.names(node).packages)

    def held_packages(self, node: Node) -> tuple[str, ...]:
        """The package, if its version is declared."""
        return () if self.version is None else self.names(node).packages

    def host(self, node: Node) -> str:
        """The name that browsers use."""
        return self.hostname or node.fqdn

    def secured(self, node: Node) -> bool:
        """Whether it speaks TLS."""
        return not self.plain_http and node.offers(IssuesCertificates) is not None

    def url(self, cluster: Cluster, node: Node) -> str:
        """Where it answers on the management network."""
        scheme = "https" if self.secured(node) else "http"
        return f"{scheme}://{cluster.management_address(node)}:{self.port}"

    def certificates(self, cluster: Cluster, node: Node) -> tuple[Certificate, ...]:
        """One, by the name that browsers use and by its address; Loki takes it as a client's, too."""
        if not self.secured(node):
            return ()
        address = str(cluster.management_address(node))
        return (
            Certificate(
                name="grafana",
                key=f"{FOLDER}/tls.key",
                chain=f"{FOLDER}/tls.crt",
                names=tuple(dict.fromkeys((self.host(node), node.fqdn, node.name, address))),
                group=self.names(node).settings["user"],
                serves=(f"{address}:{self.port}",),
            ),
        )

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """Its port."""
        purposes = {NetworkPurpose.MANAGEMENT} | ({NetworkPurpose.EXTERNAL} if self.external else set())
        return (Listener("grafana", (self.port, self.port), purposes=frozenset(purposes)),)

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """What it does at its start."""
        return (self.drop_in(node),)

    def drop_in(self, node: Node) -> str:
        """File with what its unit does besides."""
        return f"/etc/systemd/system/{self.names(node).unit}.d/90-rackwright.conf"

    def reserved_mib(self, node: Node) -> int:
        """For some users at once."""
        return 512

    def scrapes(self, cluster: Cluster, node: Node) -> tuple[Scrape, ...]:
        """Its own metrics."""
        return (Scrape("grafana", self.port),)

    def problems(self, cluster: Cluster) -> Iterable[Problem]:
        """No TLS; no Prometheus; the library that makes dashboards is missing."""
        node = cluster.primary
        if self.plain_http and node.offers(IssuesCertificates) is not None:
            yield (
                "plain_http",
                "`plain_http` has no effect: the site CA gives Grafana a certificate.",
                "leave `plain_http` out",
            )
        if not self.plain_http and node.offers(IssuesCertificates) is None:
            yield (
                "",
                "Grafana has no certificate: its users' passwords would cross the network in the clear.",
                "add the role `site_ca: {}`, or declare it: `plain_http: true`",
            )
        if not any(one.offers(CollectsMetrics) for one in cluster.nodes):
            yield (
                "",
                "No Prometheus is declared for Grafana to show.",
                "add the role `prometheus: {}`",
            )
        if not self.login_form and self.oidc is None:
            yield (
                "login_form",
                "No user can log in: there is neither a login form nor single sign-on.",
                "declare `oidc`",
            )
        if find_spec("grafana_foundation_sdk") is None:
            yield (
                "",
                "The Python package grafana-foundation-sdk, which makes Grafana's dashboards, is missing here.",
                "pip install 'rackwright[dashboards]'",
            )
