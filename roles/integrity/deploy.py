"""Brings a node to what the integrity role declares."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.operations import traces
from rackwright.osfamily.names import names
from rackwright.roles.integrity.declared import declared
from rackwright.roles.integrity.options import IntegrityOptions


@deploy("integrity")
def integrity(options: IntegrityOptions) -> None:
    """Everything through which someone could come back is declared, or goes."""
    site = site_of()
    right = declared(site.cluster, site.node, options)
    traces.authorized_keys(name="Remove authorized keys that nothing declares", declared=right)
    traces.accounts(name="Close accounts that nothing declares", declared=right)
    traces.group_members(name="Take members that nothing declares out of privileged groups", declared=right)
    traces.sudo_rules(name="Remove rules of sudo that nothing declares", declared=right)
    traces.sshd_settings(
        name="Undo settings of sshd that nothing declares",
        declared=right,
        unit=names(site.node.family, "openssh").unit or "",
    )
    traces.loose_files(name="Take setuid and write bits away that nothing declares", declared=right)
    traces.holds(name="Release packages that nothing declares as held", declared=right)
