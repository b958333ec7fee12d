"""Applies the gdrcopy role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, packages, settings
from rackwright.render import render
from rackwright.roles.gdrcopy import software
from rackwright.roles.gdrcopy.options import GdrcopyOptions

MODULES_LOAD = "/etc/modules-load.d/rackwright-gdrdrv.conf"
_LOAD = """\
modprobe gdrdrv
major=$(awk '$2 == "gdrdrv" { print $1 }' /proc/devices)
[ -c /dev/gdrdrv ] || mknod /dev/gdrdrv c "${major:?gdrdrv is not among /proc/devices}" 0
chmod 666 /dev/gdrdrv"""


@deploy("gdrcopy")
def gdrcopy(options: GdrcopyOptions) -> None:
    """The packages, and gdrdrv loaded, now and at boot."""
    node = site_of().node
    files.file(name="Load gdrdrv at boot", path=MODULES_LOAD, content=render("gdrcopy/modules-load.conf.j2"))
    packages.installed(name="Install GDRCopy", packages=software.packages(node.family, options), hold=True)
    if not has(node.platform, Capability.KERNEL_MODULES):
        return
    # Up to 2.5 the package's own script creates the device at boot, later ones leave it to udev.
    settings.setting(
        name="Load gdrdrv and open it to every user",
        target="/dev/gdrdrv",
        read="grep -q '^gdrdrv ' /proc/modules && stat -c '%F %a' /dev/gdrdrv",
        want="character special file 666",
        write=_LOAD,
    )
