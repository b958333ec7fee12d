"""Applies the fabricmanager role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.lock.for_roles import component, group_for
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, packages, settings, units
from rackwright.render import render
from rackwright.roles.fabricmanager.options import FabricmanagerOptions

UNIT = "nvidia-fabricmanager.service"
FOLDER = "/usr/share/nvidia/nvswitch"
CONF = f"{FOLDER}/fabricmanager.cfg"
_LEVELS = ("off", "critical", "error", "warning", "info")
_MODES = ("bare-metal", "shared-nvswitch", "vgpu")


@deploy("fabricmanager")
def fabricmanager(options: FabricmanagerOptions) -> None:
    """Packages of the driver's version, the configuration, the daemon."""
    site = site_of()
    if not options.needed_on(site.node):
        # left by another SKU, it fails at every boot and the node never becomes "running"
        units.unit(name="Disable Fabric Manager without NVSwitches", unit=UNIT, running=False, enabled=False)
        return
    group = group_for(site)
    if group.nvlsm and has(site.node.platform, Capability.KERNEL_MODULES):
        _subnet_manager_access()
    packages.installed(
        name="Install Fabric Manager at the driver's version",
        packages=component(group, *options.parts),
        start_daemons=False,  # with its configuration, below
        hold=True,
        disruptive=True,
    )
    files.directory(name="Create Fabric Manager's folder", path=FOLDER)
    files.file(name="Write fabricmanager.cfg", path=CONF, content=fabricmanager_cfg(options))
    # it refuses a loaded driver of another version
    units.unit(name="Start Fabric Manager", unit=UNIT, restart_on=(CONF,), after_reboot=True)


def fabricmanager_cfg(options: FabricmanagerOptions) -> str:
    """/usr/share/nvidia/nvswitch/fabricmanager.cfg."""
    return render(
        "fabricmanager/fabricmanager.cfg.j2",
        options=options,
        log_level=_LEVELS.index(options.log_level),
        mode=_MODES.index(options.mode),
    )


def _subnet_manager_access() -> None:
    """NVLSM reaches the switches of NVLink 5 as an InfiniBand subnet manager does, through ib_umad."""
    files.file(
        name="Load ib_umad at boot",
        path="/etc/modules-load.d/rackwright-nvlsm.conf",
        content=render("fabricmanager/modules-load.conf.j2"),
    )
    settings.setting(
        name="Load ib_umad",
        target="kernel module ib_umad",
        read="grep -c '^ib_umad ' /proc/modules",
        want="1",
        write="modprobe ib_umad",
        after_reboot=True,  # of the kernel that will run
    )
