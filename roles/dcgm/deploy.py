"""Applies the dcgm role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.lock.for_roles import component, group_for
from rackwright.operations import files, packages, units
from rackwright.render import render
from rackwright.roles.dcgm.options import DcgmOptions

# DCGM 4's unit; the packages still ship dcgm.service for old scripts, and both would want port 5555.
# Names and the unit's command line: NVIDIA/DCGM, config-files/systemd/, read 2026-11-21.
UNIT = "nvidia-dcgm.service"
DROP_IN = f"/etc/systemd/system/{UNIT}.d"


@deploy("dcgm")
def dcgm(options: DcgmOptions) -> None:
    """Where it listens, four packages of one version, the host engine."""
    site = site_of()
    # before the unit it belongs to: systemd 252 overlooks a folder made after it first saw the unit
    files.directory(name="Create the folder for host engine drop-ins", path=DROP_IN)
    files.file(
        name="Write the host engine's listen address",
        path=f"{DROP_IN}/90-rackwright.conf",
        content=render("dcgm/drop-in.conf.j2", options=options),
    )
    packages.installed(
        name="Install DCGM as locked",
        packages=component(group_for(site), *options.parts),
        start_daemons=False,
        hold=True,
    )
    units.unit(
        name="Start the host engine",
        unit=UNIT,
        restart_on=(DROP_IN,),
        disruptive=False,
        after_reboot=True,  # it finds the GPUs when it starts, through the loaded driver
    )
