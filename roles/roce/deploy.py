"""Applies the roce role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, packages, settings, sysctls, units
from rackwright.osfamily.names import names
from rackwright.roles.roce import paths, texts
from rackwright.roles.roce.options import RoceOptions


@deploy("roce")
def roce(options: RoceOptions) -> None:
    """The tools, the program with its settings, the unit for each boot; then what the NICs report is compared."""
    site = site_of()
    cards = options.cards(site.cluster, site.node)
    if cards and options.backend == "dcb":  # mlnx_qos comes with DOCA-OFED, which the role rdma installs
        packages.installed(name="Install the NIC tools", packages=names(site.node.family, "dcb").packages)
    if cards:
        for folder in ("/etc/rackwright", "/usr/local/libexec"):
            files.directory(name=f"Create {folder}", path=folder)
    for path, content in host.loop(  # type: ignore[no-untyped-call]
        texts.files(site.cluster, site.node, options).items()
    ):
        files.file(name=f"Write {path}", path=path, content=content)
    if not has(site.node.platform, Capability.KERNEL_MODULES):
        return
    if values := texts.sysctls(site.cluster, site.node, options):
        sysctls.live(name="Set ARP on the rails", values=values)
    if cards:
        units.unit(
            name="Configure the NICs at boot",
            unit=paths.UNIT,
            restart_on=(paths.PROGRAM, paths.SETTINGS, paths.UNIT_PATH),
            disruptive=True,  # flow control changes under traffic
        )
        settings.setting(
            name="Configure the NICs",
            target="trust, flow control and congestion notification of the NICs",
            read=f"{paths.RUN} wrong",
            want="as declared",
            write=f"{paths.RUN} apply",
            disruptive=True,
        )
