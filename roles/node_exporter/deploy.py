"""Applies the node_exporter role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.operations import files
from rackwright.operations.exporters import install_exporter, run_exporter
from rackwright.roles.node_exporter.options import NodeExporterOptions
from rackwright.roles.node_exporter.texts import arguments
from rackwright.textfiles import TEXTFILES


@deploy("node_exporter")
def node_exporter(options: NodeExporterOptions) -> None:
    """The package, the folder of textfiles, the unit."""
    site = site_of()
    install_exporter(options, arguments(site.cluster, site.node, options))
    files.directory(name="Restrict the textfile folder to root", path=TEXTFILES)
    run_exporter(options)
