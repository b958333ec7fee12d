"""Applies the mariadb role to a head."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.extra_lines import named
from rackwright.operations import files, packages, units
from rackwright.operations.mariadb import database
from rackwright.osfamily.names import names
from rackwright.roles.mariadb.options import MariadbOptions, clients
from rackwright.roles.mariadb.sizes import bind_address, server_conf


@deploy("mariadb")
def mariadb(options: MariadbOptions) -> None:
    """The server with slurmdbd's database."""
    site = site_of()
    software = names(site.node.family, "mariadb")
    conf = software.paths["conf"]
    packages.installed(name="Install MariaDB", packages=software.packages)
    content = server_conf(site.cluster, site.node, options)
    files.file(name=named("Write MariaDB's settings", content), path=conf, content=content)
    folder = f"/etc/systemd/system/{software.unit}.d"
    if bind_address(site.cluster, site.node) == "127.0.0.1":
        files.absent(
            name="Start MariaDB at boot without waiting for the network", path=f"{folder}/rackwright.conf"
        )
    else:  # its unit starts before the network is up, and the address cannot be bound then
        files.directory(name="Create the folder for MariaDB's unit settings", path=folder)
        files.file(
            name="Start MariaDB at boot once the network is up",
            path=f"{folder}/rackwright.conf",
            content="[Unit]\nWants=network-online.target\nAfter=network-online.target\n",
        )
    units.unit(name="Start MariaDB with its settings", unit=software.unit or "", restart_on=(conf,))
    database(
        name="Create slurmdbd's database and user",
        database=options.database,
        user=options.user,
        password=site.secret(options.password_secret).reveal(),
        hosts=clients(site.cluster, site.node),
    )
