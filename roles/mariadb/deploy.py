"""Brings the primary head to what the mariadb role declares."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.operations import files, packages, units
from rackwright.operations.mariadb import database
from rackwright.osfamily.names import names
from rackwright.roles.mariadb.options import MariadbOptions
from rackwright.roles.mariadb.sizes import server_conf


@deploy("mariadb")
def mariadb(options: MariadbOptions) -> None:
    """The server with slurmdbd's database; nothing on heads that are not the primary."""
    site = site_of()
    software = names(site.node.family, "mariadb")
    conf = software.paths["conf"]
    packages.installed(name="Install MariaDB", packages=software.packages)
    files.file(
        name="Write MariaDB's settings", path=conf, content=server_conf(site.cluster, site.node, options)
    )
    units.unit(name="Run MariaDB with its settings", unit=software.unit or "", restart_on=(conf,))
    database(
        name="Make slurmdbd's database and user",
        database=options.database,
        user=options.user,
        password=site.secret("slurmdbd_password").reveal(),
    )
