"""Applies the blackbox_exporter role to a head."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.operations import files
from rackwright.operations.exporters import install_exporter, run_exporter
from rackwright.roles.blackbox_exporter import texts
from rackwright.roles.blackbox_exporter.options import BlackboxExporterOptions


@deploy("blackbox_exporter")
def blackbox_exporter(options: BlackboxExporterOptions) -> None:
    """The package, its probes, the unit."""
    site = site_of()
    install_exporter(options, texts.arguments(site.cluster, site.node, options))
    conf = texts.conf_path(options)
    files.file(
        name="Write the blackbox_exporter probes",
        path=conf,
        content=texts.conf(site.cluster, site.node),
        validate=texts.check_command(site.node, options),
    )
    run_exporter(options, restart_on=(conf,))
