"""Applies the persistence role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.lock.for_roles import component, group_for
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, packages, units
from rackwright.render import render
from rackwright.roles.persistence.options import PersistenceOptions, user

UNIT = "nvidia-persistenced.service"
DROP_IN = f"/etc/systemd/system/{UNIT}.d"


@deploy("persistence")
def persistence(options: PersistenceOptions) -> None:
    """How it is started, its package as locked, the daemon where there can be a device."""
    site = site_of()
    group = group_for(site)
    # before the unit it belongs to: systemd 252 overlooks a folder made after it first saw the unit
    files.directory(name="Create the folder for persistence daemon drop-ins", path=DROP_IN)
    files.file(
        name="Write the persistence daemon's drop-in",
        path=f"{DROP_IN}/90-rackwright.conf",
        content=render("persistence/drop-in.conf.j2", user=user(group), verbose=options.verbose),
    )
    packages.installed(
        name="Install the persistence daemon as locked",
        packages=component(group, *options.parts),
        start_daemons=False,
        hold=True,
    )
    if has(site.node.platform, Capability.KERNEL_MODULES):
        units.unit(
            name="Start the persistence daemon",
            unit=UNIT,
            restart_on=(DROP_IN,),
            disruptive=False,
            after_reboot=True,  # it opens the loaded driver's devices
        )
    else:  # without a device it fails at every boot
        units.unit(name="Disable the persistence daemon", unit=UNIT, running=False, enabled=False)
