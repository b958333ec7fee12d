"""Names and texts of the storage_layout role."""

from __future__ import annotations

from rackwright.model.cluster import Node
from rackwright.model.disks import array_link, array_path, volume_path
from rackwright.render import render
from rackwright.roles.storage_layout.options import StorageLayoutOptions
from rackwright.roles.storage_layout.sections import FilesystemOptions


def device(node: Node, options: StorageLayoutOptions, one: FilesystemOptions) -> str:
    """The device of a filesystem; of one on a whole disk the disk's declared name."""
    group, _, volume = one.on.partition("/")
    if volume:
        return volume_path(group, volume)
    return array_link(node.name, group) if group in options.arrays else group


def mdadm_conf(node: Node, options: StorageLayoutOptions) -> str:
    """Which arrays are ours, by the names in their superblocks."""
    return render(
        "storage_layout/mdadm.conf.j2",
        arrays=[(array_path(name), f"{node.name}:{name}") for name in options.arrays],
    )


def mount_unit(path: str, one: FilesystemOptions, what: str) -> str:
    """The mount unit of a filesystem."""
    return render(
        "storage_layout/mount.j2",
        path=path,
        on=one.on,
        what=what,
        type=one.type,
        options=",".join(one.mount_options) or "defaults",
    )
