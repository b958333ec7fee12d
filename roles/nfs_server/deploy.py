"""Applies the nfs_server role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.operations import files, mounts, packages, settings, units
from rackwright.osfamily.names import names
from rackwright.roles.nfs_server import texts
from rackwright.roles.nfs_server.options import DROP_IN, EXPORTS, NfsServerOptions, filesystem_below


@deploy("nfs_server")
def nfs_server(options: NfsServerOptions) -> None:
    """The folders, what is exported of them, then the server; its first start is with our settings."""
    site = site_of()
    server = names(site.node.family, "nfs-server")
    for unit in host.loop(texts.MASKED):  # type: ignore[no-untyped-call]
        units.unit(name=f"Mask {unit}", unit=unit, masked=True, disruptive=False)
    packages.installed(name="Install the NFS server", packages=server.packages, start_daemons=False)
    _folders(site, options)
    for folder in host.loop(sorted({path.rpartition("/")[0] for path in (texts.CONF, EXPORTS, DROP_IN)})):  # type: ignore[no-untyped-call]
        files.directory(name=f"Create {folder}", path=folder)
    declared = texts.files(site.cluster, site.node, options)
    for path, content in host.loop(tuple(declared.items())):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=content or "")
    units.unit(
        name="Start the NFS server with its settings",
        unit=server.unit or "",
        restart_on=(texts.CONF,),
        reload_on=(EXPORTS, DROP_IN),
        disruptive=False,  # clients wait for it
    )
    exported = options.exported(site.node)
    settings.setting(
        name="Export the declared folders",
        target="exports in force",
        read=texts.read_declared(tuple(one.export or "" for one in exported)),
        want=texts.in_force(site.cluster, site.node, options),
        write="exportfs -ra",
    )
    for one in host.loop(options.bound(site.node)):  # type: ignore[no-untyped-call]
        mounts.bound(name=f"Mount {one.export} on {one.path}", folder=one.export, path=one.path)


def _folders(site: Site, options: NfsServerOptions) -> None:
    """Folders that are not mount points; the role that mounts those sets their mode."""
    for one in host.loop(options.exported(site.node)):  # type: ignore[no-untyped-call]
        if filesystem_below(site.node, one.export) != one.export:
            files.directory(name=f"Create the folder for {one.name}", path=one.export, mode=options.mode(one))
