"""Applies the ipmi_exporter role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.operations import files, settings
from rackwright.operations.exporters import install_exporter, run_exporter
from rackwright.render import render
from rackwright.roles.ipmi_exporter import texts
from rackwright.roles.ipmi_exporter.options import IpmiExporterOptions


@deploy("ipmi_exporter")
def ipmi_exporter(options: IpmiExporterOptions) -> None:
    """The driver for a BMC of the node's own, the package, what is read, the unit."""
    site = site_of()
    node = site.node
    if options.reads_own_here(node):
        files.file(
            name="Load the BMC driver at boot",
            path=texts.MODULES_LOAD,
            content=render("ipmi_exporter/modules-load.conf.j2"),
        )
        settings.setting(
            name="Load the BMC driver",
            target="module ipmi_devintf",
            read=texts.DRIVER_LOADED,
            want="loaded",
            write=texts.LOAD_DRIVER,
        )
    if not options.serves(node):
        return
    if options.reads_others(node) and not site.offline:
        texts.refuse_unreadable(options, site.secret(options.password).reveal())
    install_exporter(options, texts.arguments(site.cluster, node, options))
    conf = texts.conf_path(options)
    files.file(
        name="Write the ipmi_exporter settings",
        path=conf,
        content=texts.conf(node, options, lambda name: site.secret(name).reveal()),
        mode="640",
        group=options.names(node).settings["user"],
        sensitive=options.reads_others(node),
    )
    run_exporter(options, restart_on=(conf,))
