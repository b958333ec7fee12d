"""Applies the firewall role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.operations import guarded, packages, units
from rackwright.osfamily.names import names
from rackwright.roles.firewall import rules
from rackwright.roles.firewall.options import UNIT, FirewallOptions


@deploy("firewall")
def firewall(options: FirewallOptions) -> None:
    """Only rackwright's table; the node rolls it back by itself if it locks rackwright out."""
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
        # rackwright's rules are loaded by now; with two filters a packet needs both, and firewalld knows no role
        units.unit(name="Mask firewalld", unit="firewalld.service", masked=True, disruptive=False)
