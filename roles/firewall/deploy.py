"""Brings a node to what the firewall role declares."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.operations import guarded, packages, units
from rackwright.osfamily.names import names
from rackwright.roles.firewall import rules
from rackwright.roles.firewall.options import UNIT, FirewallOptions


@deploy("firewall")
def firewall(options: FirewallOptions) -> None:
    """Our table alone, taken back by the node itself where it locks rackwright out."""
    site = site_of()
    packages.installed(
        name="Install nftables", packages=names(site.node.family, "nftables").packages, start_daemons=False
    )
    guarded.change(
        name="Load the firewall rules",
        key="firewall",
        files=rules.files(site.cluster, site.node, options),
        activate=rules.ACTIVATE,
        live=(rules.READ, rules.IN_FORCE),
        check=rules.CHECK,
        seconds=options.confirm_seconds,
    )
    units.unit(name="Load the firewall rules at boot", unit=UNIT, running=None)
    if site.node.family.has_firewalld:
        # ours is in force by now; two filters would both have to let a packet in, and one of them knows no role
        units.unit(name="Mask firewalld", unit="firewalld.service", masked=True, disruptive=False)
