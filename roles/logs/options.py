"""Options of the logs role."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import HoldsPackages, WritesUnitFiles
from rackwright.model.logs import KeepsLogs, LogStore
from rackwright.model.options import RoleOptions
from rackwright.model.services import Certificate, IssuesCertificates, Listener, Listens, NeedsCertificates
from rackwright.osfamily.names import names
from rackwright.roles.logs import paths
from rackwright.roles.logs.stores import (
    ElasticStore,
    JournalStore,
    LokiStore,
    OpensearchStore,
    SearchStore,
    Store,
    size_bytes,
)

Problem = tuple[str, str, str | None]


class LogsOptions(RoleOptions, HoldsPackages, KeepsLogs, Listens, NeedsCertificates, WritesUnitFiles):
    """The journals of all nodes in one place."""

    store: Store = Field(
        default=JournalStore(),
        description="Where lines are kept, by `type`: `journal` (systemd-journal-remote, the distribution's own), `loki`, "
        "`elastic` or `opensearch`.",
    )
    server: str | None = Field(
        default=None,
        description="Node that keeps the journal or runs Loki, and on which `rackwright logs` reads. None: the primary "
        "head.",
    )
    retention_days: int = Field(default=14, ge=1, le=3650, description="Days for which lines are kept.")
    audit_retention_days: int = Field(
        default=90,
        ge=1,
        le=3650,
        description="Days for which entries about logins, sudo and runs of rackwright are kept.",
    )

    def is_server(self, node: Node) -> bool:
        """Whether this node keeps the lines, or is where they are asked for."""
        return node.primary if self.server is None else node.name == self.server

    def server_of(self, cluster: Cluster) -> Node:
        """That node; the primary head where the declared one does not exist."""
        return cluster.by_name.get(self.server or "", cluster.primary)

    def url(self, cluster: Cluster) -> str:
        """Where nodes send to, of a store on the server."""
        port = self.store.port if isinstance(self.store, JournalStore | LokiStore) else 0
        return f"https://{cluster.management_address(self.server_of(cluster))}:{port}"

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """Passwords at the search cluster."""
        if not isinstance(self.store, SearchStore):
            return ()
        return tuple(dict.fromkeys((self.store.sends.stored_as, self.store.manages.stored_as)))

    def log_store(self, cluster: Cluster) -> LogStore:
        """For `rackwright logs`."""
        kind, settings = paths.reader(self.store, self.url(cluster))
        server = self.server_of(cluster).name
        return LogStore(kind, server, settings, self.retention_days, self.audit_retention_days)

    def certificates(self, cluster: Cluster, node: Node) -> tuple[Certificate, ...]:
        """One with which the node shows who it is, and the server's. No name is the first of both."""
        if isinstance(self.store, SearchStore):
            return ()
        address = str(cluster.management_address(node))
        sender = Certificate(
            name="logs-sender",
            key=paths.SENDER_KEY,
            chain=paths.SENDER_CHAIN,
            # the first is the subject, after which the server names the node's file
            names=tuple(dict.fromkeys((node.name, node.fqdn, address))),
            group="root"
            if isinstance(self.store, JournalStore)
            else names(node.family, "alloy").settings["group"],
        )
        if not self.is_server(node):
            return (sender,)
        software = "journal-remote" if isinstance(self.store, JournalStore) else "loki"
        server = Certificate(
            name="logs",
            key=paths.SERVER_KEY,
            chain=paths.SERVER_CHAIN,
            names=tuple(dict.fromkeys((node.fqdn, node.name, address))),
            group=names(node.family, software).settings["group"],
            serves=(f"{address}:{self.store.port}",),
        )
        return sender, server

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """The server's port, for the management network; Loki's second one for itself alone."""
        if not self.is_server(node) or isinstance(self.store, SearchStore):
            return ()
        if isinstance(self.store, JournalStore):
            return (Listener("systemd", (self.store.port, self.store.port)),)
        grpc = Listener("loki", (paths.LOKI_GRPC, paths.LOKI_GRPC), purposes=frozenset())
        return Listener("loki", (self.store.port, self.store.port)), grpc

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """Its own units, and its settings of others'."""
        return paths.UNIT_FILES

    def held_packages(self, node: Node) -> tuple[str, ...]:
        """Those with a declared version."""
        return tuple(one.partition("=")[0] for one in self.pinned(node))

    def pinned(self, node: Node) -> tuple[str, ...]:
        """`name=version` of packages that do not come from the distribution."""
        store = self.store
        if isinstance(store, LokiStore):
            versions = {"alloy": store.alloy_version}
            versions |= {"loki": store.version} if self.is_server(node) else {}
        elif isinstance(store, ElasticStore):
            versions = {"filebeat": store.filebeat_version}
        else:
            return ()
        found = (
            (name, version)
            for software, version in versions.items()
            for name in names(node.family, software).packages
        )
        return tuple(f"{name}={version}" for name, version in found if version is not None)

    def warnings(self, cluster: Cluster) -> Iterable[Problem]:
        """Entries of the audit trail that would be gone before other lines."""
        if self.audit_retention_days < self.retention_days:
            yield (
                "audit_retention_days",
                f"The audit trail is kept for {self.audit_retention_days} days, and other lines for {self.retention_days}.",
                "raise `audit_retention_days`, or lower `retention_days`",
            )

    def problems(self, cluster: Cluster) -> Iterable[Problem]:
        """Several stores; a server that does not exist; no certificates; packages from nowhere; too little space."""
        running = [node for node in cluster.nodes if isinstance(node.options.get("logs"), LogsOptions)]
        if other := next((node for node in running if node.options["logs"] != self), None):
            yield (
                "",
                f"{other.name} has different options for logs: it would send its lines elsewhere, or keep them for a different time.",
                "declare the options of logs once, for all nodes",
            )
            return
        if self.server is not None and self.server not in [node.name for node in running]:
            yield (
                "server",
                f"{self.server} is not a node that the role logs runs on.",
                f"one of: {', '.join(node.name for node in running[:10])}",
            )
            return
        if not isinstance(self.store, SearchStore):
            yield from self._without_certificate(running)
        yield from self._without_packages(running)
        if isinstance(self.store, JournalStore):
            least = 2 * size_bytes(self.store.max_file) * len(running)
            if size_bytes(self.store.max_use) < least:
                yield (
                    "store.max_use",
                    (
                        f"{len(running)} nodes have a file of {self.store.max_file} each that is never removed: "
                        f"{self.store.max_use} leave nothing for earlier lines."
                    ),
                    f"e.g. `max_use: {-(-least // 2**30)}G`, or a smaller `max_file`",
                )

    def _without_certificate(self, running: list[Node]) -> Iterable[Problem]:
        for node in running:
            if node.offers(IssuesCertificates) is None:
                yield (
                    "",
                    (
                        f"{node.name} has no certificate: its lines could not be attributed to it, and would cross the "
                        "network in the clear."
                    ),
                    "add the role `site_ca: {}`",
                )
                return

    def _without_packages(self, running: list[Node]) -> Iterable[Problem]:
        store = self.store
        if isinstance(store, LokiStore):
            missing = {
                "archive": store.archive,
                "version": store.version,
                "alloy_version": store.alloy_version,
            }
            about = "No distribution has Loki and Alloy: Debian's and Ubuntu's package loki is a program for genetics."
            hint = "Grafana's archive, or the site's copy of it, with exact versions of loki and alloy"
        elif isinstance(store, ElasticStore):
            missing = {"archive": store.archive, "filebeat_version": store.filebeat_version}
            about, hint = (
                "No distribution has Filebeat.",
                "Elastic's archive, or the site's copy of it, with an exact version",
            )
        else:
            missing, about, hint = {}, "", ""
        if absent := [key for key, value in missing.items() if value is None]:
            yield f"store.{absent[0]}", f"{about} `{absent[0]}` is missing.", hint
        software = "rsyslog-elasticsearch" if isinstance(store, OpensearchStore) else "journal-remote"
        for node in running if isinstance(store, JournalStore | OpensearchStore) else ():
            if not names(node.family, software).packages:
                yield "store.type", f"{node.os} has no package for it, and {node.name} could not send.", None
                return
