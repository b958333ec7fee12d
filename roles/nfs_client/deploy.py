"""Applies the nfs_client role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.mounts import mounts_of
from rackwright.operations import files, packages, settings, units
from rackwright.operations.mounts import declared
from rackwright.osfamily.names import names
from rackwright.roles.nfs_client import texts
from rackwright.roles.nfs_client.options import NfsClientOptions


@deploy("nfs_client")
def nfs_client(options: NfsClientOptions) -> None:
    """What NFSv4 does not need is masked before the package would start it; then the mounts."""
    site = site_of()
    client = names(site.node.family, "nfs-client")
    for unit in host.loop(texts.MASKED):  # type: ignore[no-untyped-call]
        units.unit(name=f"Mask {unit}", unit=unit, masked=True, disruptive=False)
    wanted = texts.files(site.cluster, site.node, options)
    files.file(name="Write the modprobe settings", path=texts.MODPROBE, content=wanted[texts.MODPROBE] or "")
    # the package loads sunrpc, and asks about an idmapd.conf that is there before its own
    packages.installed(name="Install the NFS client", packages=client.packages)
    if options.uses_vast(site.node):
        packages.installed(
            name="Install VAST's client",
            packages=tuple(f"{name}={version}" for name, version in options.vast_packages.items()),
            hold=True,
            disruptive=True,  # its modules take the place of the kernel's
        )
    files.file(name=f"Write {texts.IDMAPD}", path=texts.IDMAPD, content=wanted[texts.IDMAPD] or "")
    if (modules := wanted[texts.MODULES_LOAD]) is not None:
        files.file(name="Load the RDMA module at boot", path=texts.MODULES_LOAD, content=modules)
    else:
        files.absent(name="Stop loading the RDMA module for NFS at boot", path=texts.MODULES_LOAD)
    if options.uses_rdma(site.node):
        settings.setting(
            name="Load rpcrdma",
            target="kernel module rpcrdma",
            read="[ -d /sys/module/rpcrdma ] && echo loaded",
            want="loaded",
            write="modprobe rpcrdma",
            after_reboot=True,  # of the kernel that will run
        )
    for module, parameter in host.loop(tuple(texts.PARAMETERS.items())):  # type: ignore[no-untyped-call]
        settings.setting(
            name=f"Set {parameter} of {module}",
            target=f"{parameter} of {module}",
            read=texts.live(module, options.slots),
            want=str(options.slots),
            write=f"echo {options.slots} > /sys/module/{module}/parameters/{parameter}",
        )
    units.unit(name="Start the NFS client units", unit=client.unit or "")
    declared(mounts_of(site.node, options))
