"""Options that roles with metrics share: one password, TLS with the site's CA, the unit's command line.

Prometheus, Alertmanager and nearly all exporters read the same file for TLS and users (prometheus/exporter-toolkit,
docs/web-configuration.md, read 2026-11-26). They read it, and the certificate, again at each connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import ClassVar

from pydantic import Field

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import WritesUnitFiles
from rackwright.model.monitoring import PASSWORD_SECRET, USER, CollectsMetrics, ExposesMetrics, Scrape
from rackwright.model.options import RoleOptions
from rackwright.model.services import (
    PROGRAM_LENGTH,
    Certificate,
    IssuesCertificates,
    Listener,
    Listens,
    NeedsCertificates,
)
from rackwright.osfamily.names import Names, names
from rackwright.render import render
from rackwright.secrets.hashed import bcrypt_hash

FOLDER = "/etc/rackwright-exporters"
"""Certificates and users of exporters, a folder for each role."""
_COST = 8
"""exporter-toolkit caches logins, so scrapes compute no hash."""

Problem = tuple[str, str, str | None]


class ExporterOptions(RoleOptions, ExposesMetrics, Listens, NeedsCertificates, WritesUnitFiles):
    """Options of a role that runs one program with metrics; `software` names it in the families' tables."""

    role: ClassVar[str]
    software: ClassVar[str]
    job: ClassVar[str]
    """Prometheus' name for what it serves."""
    address_flag: ClassVar[str] = "--web.listen-address"
    users_flag: ClassVar[str] = "--web.config.file"
    secrets: ClassVar[tuple[str, ...]] = (PASSWORD_SECRET,)
    password_secret: ClassVar[str] = PASSWORD_SECRET
    """The secret that opens it."""

    port: int = Field(ge=1, le=65535, description="TCP port on the management address.")
    extra_arguments: tuple[str, ...] = Field(
        default=(),
        description="Additional arguments of the program, after rackwright's own; the last duplicate wins.",
    )

    @property
    def folder(self) -> str:
        """Its own files."""
        return f"{FOLDER}/{self.role}"

    def names(self, node: Node) -> Names:
        """Packages, unit, program and user on a node's family."""
        return names(node.family, self.software)

    def unit(self, node: Node) -> str:
        """Its systemd unit."""
        return self.names(node).unit or ""

    def serves(self, node: Node) -> bool:
        """Whether the program runs on a node of the role; False where the platform has nothing that it could read."""
        return True

    def service(self, node: Node) -> tuple[str, ...]:
        """Further settings of its unit's section [Service], e.g. rights that it needs or can do without."""
        return ()

    def secured(self, node: Node) -> bool:
        """Whether it speaks TLS: wherever the site has a CA."""
        return node.offers(IssuesCertificates) is not None

    def certificates(self, cluster: Cluster, node: Node) -> tuple[Certificate, ...]:
        """One, by its addresses on the management network."""
        if not self.serves(node) or not self.secured(node):
            return ()
        address = str(cluster.management_address(node))
        return (
            Certificate(
                name=self.role,
                key=f"{self.folder}/tls.key",
                chain=f"{self.folder}/tls.crt",
                names=tuple(dict.fromkeys((node.fqdn, node.name, address))),
                group=self.names(node).settings["user"],
                serves=(f"{address}:{self.port}",),
            ),
        )

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """Its port, for the management network alone."""
        if not self.serves(node):
            return ()
        program = PurePosixPath(self.names(node).paths["program"]).name[:PROGRAM_LENGTH]
        return (Listener(program, (self.port, self.port)),)

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """The command line of its unit."""
        return (self.drop_in(node),) if self.serves(node) else ()

    def scrapes(self, cluster: Cluster, node: Node) -> tuple[Scrape, ...]:
        """What it serves at /metrics."""
        if not self.serves(node):
            return ()
        return (Scrape(self.job, self.port, password_secret=self.password_secret),)

    def drop_in(self, node: Node) -> str:
        """File with the command line of its unit."""
        return f"/etc/systemd/system/{self.unit(node)}.d/90-rackwright.conf"

    @property
    def web_config(self) -> str:
        """File with its users and certificate."""
        return f"{self.folder}/web.yml"

    def url(self, cluster: Cluster, node: Node) -> str:
        """Where it answers."""
        scheme = "https" if self.secured(node) else "http"
        return f"{scheme}://{cluster.management_address(node)}:{self.port}"

    def problems(self, cluster: Cluster) -> Iterable[Problem]:
        """Report OS families without the program, and undeclared plain HTTP for metrics and their password."""
        nodes = [node for node in cluster.running(self.role, self) if self.serves(node)]
        for node in nodes:
            if not self.names(node).packages:
                yield (
                    "",
                    f"{node.name} should run {self.software}, but {node.os} has no package for it.",
                    f"remove the role {self.role} from this node",
                )
                return
        for node in nodes:
            if not self.secured(node) and not _in_the_clear(cluster):
                yield (
                    "",
                    (
                        f"{node.name} has no certificate for {self.software}: metrics and their password would "
                        "cross the network unencrypted."
                    ),
                    "add the role `site_ca: {}`, or declare it: `roles.prometheus.plain_http: true`",
                )
                return


def _in_the_clear(cluster: Cluster) -> bool:
    """Whether plain HTTP is declared, which Prometheus' own options do."""
    collectors = (node.offers(CollectsMetrics) for node in cluster.nodes)
    return any(collector is not None and collector.plain_http for collector in collectors)


def web_config(cluster: Cluster, node: Node, options: ExporterOptions, secret: Callable[[str], str]) -> str:
    """Users and certificate of an exporter: everyone needs the password."""
    password = secret(options.password_secret)
    return render(
        "exporters/web.yml.j2",
        certificate=next(iter(options.certificates(cluster, node)), None),
        user=USER,
        password_hash=bcrypt_hash(password, salt_key=password, salt_of=cluster.name, cost=_COST),
    )


def drop_in(cluster: Cluster, node: Node, options: ExporterOptions, arguments: Iterable[str]) -> str:
    """Its unit's settings: its address, its users, what the role adds."""
    everything = (
        f"{options.address_flag}={cluster.management_address(node)}:{options.port}",
        f"{options.users_flag}={options.web_config}",
        *arguments,
        *options.extra_arguments,
    )
    return render(
        "exporters/unit.conf.j2",
        program=options.names(node).paths["program"],
        arguments=[_systemd_word(argument) for argument in everything],
        settings=options.service(node),
    )


def _systemd_word(text: str) -> str:
    """One word of ExecStart=, quoted for systemd (systemd.service(5), "Command lines")."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
