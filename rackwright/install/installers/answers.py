"""Answers for the declared installer: rejected if it cannot do what is declared, validated before they are served."""

from __future__ import annotations

from rackwright.errors import InstallError
from rackwright.install.installers import autoinstall, kickstart, preseed
from rackwright.install.installers.refusals import refuse
from rackwright.install.installers.request import Answers, Request
from rackwright.model.install import Installer

_MADE = {
    Installer.AUTOINSTALL: autoinstall.answers,
    Installer.KICKSTART: kickstart.answers,
    Installer.PRESEED: preseed.answers,
}


def make(request: Request) -> Answers:
    """Files and kernel arguments of one installation; raises InstallError with every reason against it."""
    install, node = request.install, request.node
    refuse(request.cluster, node)
    if len(request.disks) != install.disks or len({disk.serial for disk in request.disks}) != install.disks:
        approved = ", ".join(disk.serial for disk in request.disks) or "none"
        raise InstallError(
            f"{node.name} needs {install.disks} disk{'s' if install.disks > 1 else ''}, but approved are: {approved}."
        )
    if install.installer is None:  # already checked by `request.install`
        raise InstallError(f"{node.name} declares no installer.")
    return _MADE[install.installer](request)
