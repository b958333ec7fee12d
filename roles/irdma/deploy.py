"""Applies the irdma role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, settings, units
from rackwright.roles.irdma import paths, texts
from rackwright.roles.irdma.options import IrdmaOptions


@deploy("irdma")
def irdma(options: IrdmaOptions) -> None:
    """The program and its unit; then what devlink reports is compared."""
    site = site_of()
    ports = options.ports(site.cluster, site.node)
    if not ports:
        return
    for path, content in host.loop(texts.files(ports).items()):  # type: ignore[no-untyped-call]
        mode = "755" if path == paths.PROGRAM else "644"
        files.file(name=f"Write {path}", path=path, content=content, mode=mode)
    if not has(site.node.platform, Capability.HARDWARE):
        return
    units.unit(
        name="Set the port protocol at boot", unit=paths.UNIT, restart_on=(paths.PROGRAM, paths.UNIT_PATH)
    )
    settings.setting(
        name="Set the port protocol",
        target="iWARP or RoCE v2 of Intel's ports",
        read=texts.read(ports),
        want=texts.wanted(ports),
        write=paths.PROGRAM,
        disruptive=True,  # the RDMA device goes and comes back
    )
