"""The files of blackbox_exporter.

Keys: prometheus/blackbox_exporter, CONFIGURATION.md of 0.26 (read 2026-11-27); Debian 12 has 0.23, which has all of them.
"""

from __future__ import annotations

from rackwright.model.cluster import Cluster, Node
from rackwright.model.services import IssuesCertificates
from rackwright.render import render
from rackwright.roles.blackbox_exporter.options import BlackboxExporterOptions


def conf_path(options: BlackboxExporterOptions) -> str:
    """Its modules."""
    return f"{options.folder}/blackbox.yml"


def conf(cluster: Cluster, node: Node) -> str:
    """Its probes."""
    ca = node.offers(IssuesCertificates)
    return render(
        "blackbox_exporter/blackbox.yml.j2",
        trust=None if ca is None else ca.trust_file,
        name=cluster.primary.fqdn,
    )


def arguments(cluster: Cluster, node: Node, options: BlackboxExporterOptions) -> tuple[str, ...]:
    """Its flags besides address and users."""
    return (f"--config.file={conf_path(options)}",)


def check_command(node: Node, options: BlackboxExporterOptions) -> str:
    """Reads a file of modules, `%s`, as the program does."""
    return f"{options.names(node).paths['program']} --config.check --config.file=%s"
