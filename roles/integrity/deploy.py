"""Applies the integrity role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.operations import traces
from rackwright.osfamily.names import names
from rackwright.roles.integrity.declared import declared
from rackwright.roles.integrity.options import IntegrityOptions


@deploy("integrity")
def integrity(options: IntegrityOptions) -> None:
    """Removes every undeclared way back in."""
    site = site_of()
    right = declared(site.cluster, site.node, options)
    traces.authorized_keys(name="Remove undeclared authorized keys", declared=right)
    traces.accounts(name="Lock undeclared accounts", declared=right)
    traces.group_members(name="Remove undeclared members from privileged groups", declared=right)
    traces.sudo_rules(name="Remove undeclared sudo rules", declared=right)
    traces.sshd_settings(
        name="Remove undeclared sshd settings",
        declared=right,
        unit=names(site.node.family, "openssh").unit or "",
    )
    traces.loose_files(name="Clear undeclared setuid and write bits", declared=right)
    traces.holds(name="Unhold undeclared packages", declared=right)
