"""Applies the cephfs_client role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.model.platforms import Capability, has
from rackwright.mounts import mounts_of
from rackwright.operations import files, packages
from rackwright.operations.modules import module_available
from rackwright.operations.mounts import declared
from rackwright.operations.package_archive import package_archive
from rackwright.roles.cephfs_client.options import FOLDER, CephfsClientOptions


@deploy("cephfs_client")
def cephfs_client(options: CephfsClientOptions) -> None:
    """mount.ceph, the keys, then the mounts."""
    site = site_of()
    if not has(site.node.platform, Capability.NETWORK_FILESYSTEMS):
        return
    if options.archive is not None:
        package_archive(site, "ceph", options.archive)
    packages.installed(
        name="Install the Ceph client",
        packages=options.packages(site.node),
        hold=options.version is not None,
    )
    module_available(site, "ceph")
    files.directory(name="Create the folder for Ceph keys", path=FOLDER)
    for one in host.loop(options.mounted(site.node)):  # type: ignore[no-untyped-call]
        files.file(
            name=f"Write the key for {one.name}",
            path=options.key_file(one),
            content=f"{site.secret(options.access[one.name].stored_as).reveal().strip()}\n",
            mode="600",
            sensitive=True,
        )
    declared(mounts_of(site.node, options))
