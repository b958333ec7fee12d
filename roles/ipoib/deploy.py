"""Applies the ipoib role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.facts.settings import Answer
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, settings, units
from rackwright.roles.ipoib import texts
from rackwright.roles.ipoib.layout import links
from rackwright.roles.ipoib.options import IpoibOptions


@deploy("ipoib")
def ipoib(options: IpoibOptions) -> None:
    """The module, files for what configures networks on the release, and then the interfaces."""
    site = site_of()
    platform = site.node.platform
    if not (has(platform, Capability.NETWORK_PORTS) and has(platform, Capability.KERNEL_MODULES)):
        return
    files.file(
        name="Load ib_ipoib at boot",
        path=texts.MODULES_LOAD,
        content="# Written by rackwright; changes made here are undone.\nib_ipoib\n",
    )
    settings.setting(
        name="Load ib_ipoib",
        target="kernel module ib_ipoib",
        read="[ -d /sys/module/ib_ipoib ] && echo loaded",
        want="loaded",
        write="modprobe ib_ipoib",
        after_reboot=True,
    )
    wanted = links(site.cluster, site.node, options)
    declared = texts.files(site.node, wanted)
    for path, text in host.loop(tuple(declared.items())):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text, mode=texts.mode(path))
    there: str | None = host.get_fact(Answer, read=texts.of_ours())
    stale = tuple(path for path in (there or "").splitlines() if path not in declared)
    for path in host.loop(stale):  # type: ignore[no-untyped-call]
        files.absent(name=f"Remove {path}", path=path)
    if site.node.os.network != "networkmanager":
        units.unit(name="Start systemd-networkd", unit="systemd-networkd.service", disruptive=False)
    if wanted:
        settings.setting(
            name="Bring up the IPoIB interfaces",
            target="IPoIB interfaces",
            read=texts.live(wanted),
            want=texts.IN_FORCE,
            write=texts.activate(site.node, wanted),
            disruptive=True,
            after_reboot=True,
        )
