"""The files of mysqld_exporter.

Flags: `--help` of 0.17.2 in Debian 13 (read 2026-11-27).
"""

from __future__ import annotations

from rackwright.model.cluster import Cluster, Node
from rackwright.render import render
from rackwright.roles.mysqld_exporter.options import MysqldExporterOptions

RIGHTS = ("PROCESS",)
"""Enough for all that is collected: server status, variables, InnoDB's tables of itself, the list of threads."""
_COLLECTED = {
    "engine_innodb_status": True,
    "info_schema.innodb_tablespaces": True,  # the size of each table's file, without a right on any table
    "info_schema.processlist": True,
    "slave_status": False,  # needs a further right; one server replicates to none
}


def conf_path(options: MysqldExporterOptions) -> str:
    """Where it logs in."""
    return f"{options.folder}/my.cnf"


def conf(node: Node, options: MysqldExporterOptions) -> str:
    """As whom, and over which socket; there is no password."""
    return render(
        "mysqld_exporter/my.cnf.j2",
        user=options.database_user,
        socket=options.names(node).paths["socket"],
    )


def arguments(cluster: Cluster, node: Node, options: MysqldExporterOptions) -> tuple[str, ...]:
    """Its flags besides address and users."""
    return (
        f"--config.my-cnf={conf_path(options)}",
        *(f"--{'' if on else 'no-'}collect.{name}" for name, on in _COLLECTED.items()),
    )
