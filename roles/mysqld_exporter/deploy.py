"""Applies the mysqld_exporter role to a head."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.operations import files
from rackwright.operations.exporters import install_exporter, run_exporter
from rackwright.operations.mariadb import socket_user
from rackwright.roles.mysqld_exporter import texts
from rackwright.roles.mysqld_exporter.options import MysqldExporterOptions


@deploy("mysqld_exporter")
def mysqld_exporter(options: MysqldExporterOptions) -> None:
    """The package, its user in the database, the unit."""
    site = site_of()
    install_exporter(options, texts.arguments(site.cluster, site.node, options))
    conf = texts.conf_path(options)
    files.file(name="Write the mysqld_exporter login", path=conf, content=texts.conf(site.node, options))
    socket_user(
        name="Grant mysqld_exporter access to MariaDB's status",
        user=options.database_user,
        rights=texts.RIGHTS,
    )
    run_exporter(options, restart_on=(conf,))
