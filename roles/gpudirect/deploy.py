"""Brings a node to what the gpudirect role declares."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, packages, settings, units
from rackwright.render import render
from rackwright.roles.gpudirect import bridges
from rackwright.roles.gpudirect.options import GpudirectOptions

PEERMEM = "/etc/modules-load.d/rackwright-peermem.conf"
ACS = "/usr/local/sbin/rackwright-acs-off"
ACS_UNIT = "rackwright-acs-off.service"


@deploy("gpudirect")
def gpudirect(options: GpudirectOptions) -> None:
    """Kernel arguments of the next boot, ACS bits at each boot, nvidia-peermem where asked for."""
    node = site_of().node
    if options.iommu == "passthrough" and has(node.platform, Capability.KERNEL):
        _iommu(node)
    if has(node.platform, Capability.HARDWARE):
        _acs(options)
    _peermem(node, options)


def _iommu(node: Node) -> None:
    arguments = bridges.kernel_arguments(node)
    if (folder := node.family.grub_folder) is not None:
        files.directory(name="Create the folder of GRUB's settings", path=folder)
        files.file(
            name="Declare the IOMMU's kernel arguments",
            path=f"{folder}/90-rackwright-gpudirect.cfg",
            content=render("gpudirect/grub.cfg.j2", arguments=arguments),
        )
    line, write = node.family.kernel_arguments(arguments)
    settings.setting(
        name="Put the IOMMU into passthrough at the next boot",
        target="kernel arguments of the next boot",
        read=f"line=$({line}); for one in {' '.join(arguments)}; do "
        'case " $line " in *" $one "*) echo "$one" ;; esac; done',
        want="\n".join(arguments),
        write=write,
    )


def _acs(options: GpudirectOptions) -> None:
    unit = f"/etc/systemd/system/{ACS_UNIT}"
    if options.acs == "leave":
        units.unit(name="Leave ACS as it is", unit=ACS_UNIT, running=False, enabled=False, disruptive=False)
        files.absent(name="Remove the ACS unit", path=unit)
        files.absent(name="Remove the ACS script", path=ACS)
        return
    packages.installed(name="Install setpci", packages=("pciutils",))
    files.file(
        name="Write what turns ACS off",
        path=ACS,
        content=render("gpudirect/acs-off.sh.j2"),
        mode="755",
        validate="sh -n %s",
    )
    files.file(name="Write the ACS unit", path=unit, content=render("gpudirect/acs-off.service.j2"))
    units.unit(name="Turn ACS off, now and at boot", unit=ACS_UNIT, restart_on=(ACS,), disruptive=False)


def _peermem(node: Node, options: GpudirectOptions) -> None:
    if not options.peermem:
        files.absent(name="Load no nvidia-peermem at boot", path=PEERMEM)
        return
    files.file(
        name="Load nvidia-peermem at boot", path=PEERMEM, content=render("gpudirect/modules-load.conf.j2")
    )
    if has(node.platform, Capability.KERNEL_MODULES):
        settings.setting(
            name="Load nvidia-peermem",
            target="kernel module nvidia_peermem",
            read="grep -c '^nvidia_peermem ' /proc/modules",
            want="1",
            write="modprobe nvidia-peermem",
        )
