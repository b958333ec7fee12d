"""Applies the munge role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.model.types import NodeRole
from rackwright.operations import files, packages, units, users
from rackwright.operations.munge import key as munge_key
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.munge.options import MungeOptions


@deploy("munge")
def munge(options: MungeOptions) -> None:
    """The site's key, then munged: the key comes first, so that the package starts munged with it."""
    site = site_of()
    software = names(site.node.family, "munge")
    key, daemon_options = software.paths["key"], software.paths["daemon_options"]
    users.group(name="Create group munge", group="munge", gid=options.gid)
    users.user(
        name="Create user munge",
        user="munge",
        uid=options.uid,
        group="munge",
        shell="/usr/sbin/nologin",
        home="/nonexistent",
        system=True,
        create_home=False,
    )
    # The modes munged requires: only munge may write above the key; the socket's folder is in /run.
    files.directory(name="Create munge's folder", path="/etc/munge", mode="700", owner="munge", group="munge")
    files.directory(
        name="Create munge's state folder", path="/var/lib/munge", mode="711", owner="munge", group="munge"
    )
    files.directory(
        name="Create munge's log folder", path="/var/log/munge", mode="700", owner="munge", group="munge"
    )
    munge_key(name="Write the munge key", path=key, encoded=site.secret("munge_key").reveal())
    files.file(
        name="Write munged's options",
        path=daemon_options,
        content=render(
            "munge/daemon-options.j2",
            key=key,
            threads=options.head_threads if site.node.holds(NodeRole.HEAD) else options.threads,
        ),
    )
    packages.installed(name="Install munge", packages=software.packages)
    units.unit(name="Start munged with its key", unit=software.unit or "", restart_on=(key, daemon_options))
