"""Options of the mysqld_exporter role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pydantic import Field

from rackwright.exporters import ExporterOptions, Problem
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import AccountingDatabase, ReadsDatabaseServer
from rackwright.model.monitoring import SERVER_SECRET, USER
from rackwright.model.types import NodeRole


class MysqldExporterOptions(ExporterOptions, ReadsDatabaseServer):
    """mysqld_exporter on the head with the accounting's database."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD})
    role: ClassVar[str] = "mysqld_exporter"
    software: ClassVar[str] = "mysqld_exporter"
    job: ClassVar[str] = "mariadb"
    secrets: ClassVar[tuple[str, ...]] = (SERVER_SECRET,)
    password_secret: ClassVar[str] = SERVER_SECRET
    database_user: ClassVar[str] = USER

    port: int = Field(default=9104, ge=1, le=65535, description="TCP port on the management address.")
    node: str | None = Field(
        default=None, description="Head that it runs on, the one with MariaDB. None: the primary head."
    )

    def runs_on(self, node: Node) -> bool:
        """On one head alone."""
        return node.primary if self.node is None else node.name == self.node

    def service(self, node: Node) -> tuple[str, ...]:
        """It reads a socket, and serves."""
        return (
            "CapabilityBoundingSet=",
            "NoNewPrivileges=yes",
            "PrivateDevices=yes",
            "PrivateTmp=yes",
            "ProtectHome=yes",
            "ProtectSystem=strict",
        )

    def problems(self, cluster: Cluster) -> Iterable[Problem]:
        """A node without a database server."""
        yield from super().problems(cluster)
        heads = [node.name for node in cluster.holding(NodeRole.HEAD)]
        if self.node is not None and self.node not in heads:
            yield "node", f"{self.node} is not a head of this cluster.", f"one of: {', '.join(heads)}"
        for node in cluster.running(self.role, self):
            if node.offers(AccountingDatabase) is None:
                yield (
                    "node",
                    f"{node.name} has no role with a database server.",
                    "add the role mariadb, or set `node` to the head that it runs on",
                )
