"""Options of the mariadb role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pydantic import Field

from rackwright.extra_lines import MARIADB, ExtraFile, ExtraLines
from rackwright.model.backups import BacksUp, BackupPart
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import (
    AccountingDatabase,
    GoesFirst,
    ReservesMemory,
    UsesAccountingDatabase,
    WritesUnitFiles,
)
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.services import Listener, Listens
from rackwright.model.types import NodeRole
from rackwright.osfamily.names import names

_IDENTIFIER = r"^[a-z][a-z0-9_]{0,31}$"


class MariadbExtra(Frozen):
    """Lines at the end of the server's section."""

    server_cnf: ExtraLines = Field(
        default=(),
        description="Of rackwright's file of settings, in [mariadbd], e.g. [max_connections = 500].",
    )


class MariadbOptions(
    AccountingDatabase, BacksUp, GoesFirst, Listens, ReservesMemory, WritesUnitFiles, RoleOptions
):
    """MariaDB on one head for Slurm's accounting; other heads are left alone."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD})
    secrets: ClassVar[tuple[str, ...]] = ("slurmdbd_password",)

    node: str | None = Field(default=None, description="Head that it runs on. None: the primary head.")
    database: str = Field(
        default="slurm_acct_db",
        pattern=_IDENTIFIER,
        description="Database of slurmdbd; the slurm role's too.",
    )
    user: str = Field(
        default="slurm", pattern=_IDENTIFIER, description="Database user of slurmdbd, only from its node."
    )
    buffer_pool_mib: int | None = Field(
        default=None,
        ge=64,
        description="innodb_buffer_pool_size. None: 10 % of the head's memory, but at least 4 GiB where "
        "that is at most a quarter of it (Slurm's accounting guide: 5 to 50 %, 4 GiB or more).",
    )
    lock_wait_timeout_seconds: int = Field(
        default=900,
        ge=50,
        description="innodb_lock_wait_timeout; slurmdbd complains below 900 (accounting guide).",
    )
    max_allowed_packet_mib: int = Field(
        default=64, ge=16, le=1024, description="max_allowed_packet; at least 16."
    )

    extra: MariadbExtra = Field(default=MariadbExtra(), description="Extra lines of MariaDB's file.")

    def runs_on(self, node: Node) -> bool:
        """On one head alone."""
        return node.primary if self.node is None else node.name == self.node

    def goes_first(self, node: Node) -> bool:
        """slurmdbd may run on another node."""
        return True

    def reserved_mib(self, node: Node) -> int:
        """The buffer pool and a tenth more: InnoDB's control structures take that much besides.

        MySQL reference manual, innodb_buffer_pool_size, read 2026-11-23.
        """
        from rackwright.roles.mariadb.sizes import buffer_pool_mib

        return buffer_pool_mib(node, self) * 11 // 10 if self.runs_on(node) else 0

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """A node that is not a head never ran it, and nothing would be missed; extra lines that set what rackwright sets."""
        heads = [node.name for node in cluster.holding(NodeRole.HEAD)]
        if self.node is not None and self.node not in heads:
            yield "node", f"{self.node} is not a head of this cluster.", f"one of: {', '.join(heads)}"
        file = ExtraFile("server_cnf", "MariaDB's file", MARIADB, ("mariadb/server.cnf.j2",))
        yield from file.problems(self.extra.server_cnf, type(self))

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """The server, on loopback alone unless slurmdbd is on another node; no X Protocol as in MySQL."""
        return (Listener("mariadbd", (self.port, self.port)),)

    def backup_parts(self, cluster: Cluster, node: Node) -> tuple[BackupPart, ...]:
        """A dump of slurmdbd's database, consistent although slurmdbd goes on writing."""
        from rackwright.roles.mariadb.dump import dump_command, load_command, ready_command

        return (
            BackupPart(
                name="database",
                about=f"database {self.database}",
                dump=dump_command(self.database),
                load=load_command(),
                ready=ready_command(),
            ),
        )

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """When MariaDB starts where it listens on an address of the node."""
        return (f"/etc/systemd/system/{names(node.family, 'mariadb').unit}.d/rackwright.conf",)


def clients(cluster: Cluster, server: Node) -> tuple[str, ...]:
    """Hosts that the database user connects from: localhost, and addresses of other nodes."""
    found = []
    for node in cluster.nodes:
        accounting = node.offers(UsesAccountingDatabase)
        if accounting is not None and accounting.uses_database_on(node):
            found.append("localhost" if node.name == server.name else str(cluster.management_address(node)))
    return tuple(sorted(found, key=lambda host: host != "localhost")) or ("localhost",)
