"""MariaDB's settings for the memory of the head."""

from __future__ import annotations

from rackwright.extra_lines import with_extra
from rackwright.model.cluster import Cluster, Node
from rackwright.model.types import Platform
from rackwright.render import render
from rackwright.roles.mariadb.options import MariadbOptions, clients

_LEAST_MIB = 128
_RECOMMENDED_MIB = 4096
_LOG_FILE_MIB = (64, 4096)


def buffer_pool_mib(node: Node, options: MariadbOptions) -> int:
    """Declared, or a tenth of the memory; 4 GiB or a quarter of the memory where a tenth is less."""
    if options.buffer_pool_mib is not None:
        return options.buffer_pool_mib
    in_lab = node.platform is Platform.CONTAINER and node.lab is not None
    memory = node.lab.memory_mib if in_lab and node.lab else node.sku.memory_mib
    return max(_LEAST_MIB, memory // 10, min(_RECOMMENDED_MIB, memory // 4))


def log_file_mib(node: Node, options: MariadbOptions) -> int:
    """A quarter of the buffer pool, as Slurm's accounting guide has it, within reason."""
    least, most = _LOG_FILE_MIB
    return min(most, max(least, buffer_pool_mib(node, options) // 4))


def bind_address(cluster: Cluster, node: Node) -> str:
    """127.0.0.1, or the management address where slurmdbd runs on another node.

    One address: MariaDB takes several from 10.11 on only. The socket of localhost is there in any case.
    """
    return "127.0.0.1" if clients(cluster, node) == ("localhost",) else str(cluster.management_address(node))


def server_conf(cluster: Cluster, node: Node, options: MariadbOptions) -> str:
    """The text of our file among the server's settings."""
    text = render(
        "mariadb/server.cnf.j2",
        cluster=cluster,
        options=options,
        bind_address=bind_address(cluster, node),
        buffer_pool_mib=buffer_pool_mib(node, options),
        log_file_mib=log_file_mib(node, options),
    )
    return with_extra(text, options.extra.server_cnf)
