"""Applies the gpudirect role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, settings
from rackwright.render import render
from rackwright.roles.gpudirect.options import GpudirectOptions

PEERMEM = "/etc/modules-load.d/rackwright-peermem.conf"


@deploy("gpudirect")
def gpudirect(options: GpudirectOptions) -> None:
    """nvidia-peermem where asked for."""
    node = site_of().node
    _peermem(node, options)


def _peermem(node: Node, options: GpudirectOptions) -> None:
    if not options.peermem:
        files.absent(name="Stop loading nvidia-peermem at boot", path=PEERMEM)
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
