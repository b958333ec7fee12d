"""Applies the mig role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.model.cluster import Node
from rackwright.operations import files, packages, settings, units
from rackwright.render import render
from rackwright.roles.mig import partitions
from rackwright.roles.mig.options import MigOptions

PROGRAM = "/usr/local/sbin/rackwright-mig"
UNIT = "rackwright-mig.service"
CONFIG = "/etc/rackwright/mig.yaml"


@deploy("mig")
def mig(options: MigOptions) -> None:
    """The script and unit that partition the GPUs at boot; now too, where the layout is not as declared."""
    node = site_of().node
    if options.tool == "mig-parted":
        _mig_parted(node, options)
    files.file(
        name="Write the script that partitions the GPUs",
        path=PROGRAM,
        content=program(node, options),
        mode="755",
        validate="sh -n %s",
    )
    files.file(
        name="Write the unit that partitions the GPUs at boot",
        path=f"/etc/systemd/system/{UNIT}",
        content=render("mig/rackwright-mig.service.j2"),
    )
    units.unit(name="Partition the GPUs at every boot", unit=UNIT, running=None)
    if node.simulates_gpus:
        return  # its nvidia-smi always shows the declared layout and cannot change it
    settings.setting(
        name="Partition the GPUs as declared",
        target="MIG layout",
        read=partitions.SUMMARY,
        want=partitions.wanted_summary(node),
        write=f"systemctl restart {UNIT} || {{ journalctl --sync; journalctl -u {UNIT} -n 15 --no-pager -o cat >&2; exit 1; }}",
        disruptive=True,
        after_reboot=True,  # nvidia-smi needs the loaded driver, and the unit partitions the GPUs at that boot
    )


def program(node: Node, options: MigOptions) -> str:
    """/usr/local/sbin/rackwright-mig."""
    return render(
        "mig/rackwright-mig.sh.j2",
        read=partitions.READ,
        wanted=partitions.wanted(node),
        creation=partitions.creation(node),
        tool=options.tool,
        config=CONFIG,
        stop_services=options.stop_services,
    )


def _mig_parted(node: Node, options: MigOptions) -> None:
    packages.installed(
        name="Install mig-parted",
        packages=(f"nvidia-mig-manager={options.version}",),
        start_daemons=False,
        hold=True,
    )
    # its unit applies its own layout at each boot, and reboots the node if a GPU cannot be reset
    units.unit(name="Mask mig-parted's own unit", unit="nvidia-mig-manager.service", masked=True)
    files.directory(name="Create rackwright's folder", path="/etc/rackwright")
    files.file(
        name="Write the layout for mig-parted",
        path=CONFIG,
        content=render("mig/mig-parted.yaml.j2", layout=node.mig),
    )
