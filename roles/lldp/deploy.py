"""Applies the lldp role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, packages, settings, units
from rackwright.osfamily.names import names
from rackwright.roles.lldp import texts
from rackwright.roles.lldp.options import LldpOptions


@deploy("lldp")
def lldp(options: LldpOptions) -> None:
    """lldpd with its settings; firmware agents that would consume its frames are disabled first."""
    site = site_of()
    packages.installed(name="Install lldpd", packages=names(site.node.family, "lldpd").packages)
    if options.firmware_agent == "off" and has(site.node.platform, Capability.HARDWARE):
        settings.setting(
            name="Disable LLDP in NIC firmware",
            target="LLDP agents in firmware",
            read=texts.AGENTS_ON,
            want="off",
            write=texts.AGENTS_OFF,
            disruptive=True,  # i40e resets the port
        )
    files.directory(name="Create the folder for lldpd settings", path="/etc/lldpd.d")
    files.file(
        name="Write lldpd's settings",
        path=texts.SETTINGS,
        content=texts.settings(site.cluster, site.node, options),
    )
    units.unit(name="Start lldpd", unit=texts.UNIT, restart_on=(texts.SETTINGS,), disruptive=False)
