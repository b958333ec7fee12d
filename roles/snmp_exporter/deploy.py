"""Applies the snmp_exporter role to a head."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.operations import files
from rackwright.operations.exporters import install_exporter, run_exporter
from rackwright.roles.snmp_exporter import texts
from rackwright.roles.snmp_exporter.options import SnmpExporterOptions


@deploy("snmp_exporter")
def snmp_exporter(options: SnmpExporterOptions) -> None:
    """The package, what is read and with which credentials, the unit."""
    site = site_of()
    node = site.node
    install_exporter(options, texts.arguments(site.cluster, node, options))
    modules, auths = texts.modules_path(options), texts.auths_path(options)
    files.file(
        name="Write the snmp_exporter settings",
        path=modules,
        content=texts.modules(),
        validate=texts.check_command(node, options),
    )
    files.file(
        name="Write snmp_exporter's credentials",
        path=auths,
        content=texts.auths(options, lambda name: site.secret(name).reveal()),
        mode="640",
        group=options.names(node).settings["user"],
        sensitive=True,
        validate=texts.check_command(node, options),
    )
    run_exporter(options, restart_on=(modules, auths, *options.module_files))
