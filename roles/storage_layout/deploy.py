"""Applies the storage_layout role to a node."""

from __future__ import annotations

from pathlib import PurePosixPath

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.model.cluster import Node
from rackwright.model.disks import DEVICE
from rackwright.model.mount_names import unit_name
from rackwright.operations import arrays, files, filesystems, packages, volumes
from rackwright.osfamily.names import names
from rackwright.roles.storage_layout.options import StorageLayoutOptions
from rackwright.roles.storage_layout.sections import FilesystemOptions
from rackwright.roles.storage_layout.texts import device, mdadm_conf, mount_unit


@deploy("storage_layout")
def storage_layout(options: StorageLayoutOptions) -> None:
    """Arrays, then volumes on them, then filesystems, each mounted."""
    node = site_of().node
    options = options.on_node(node)
    for software in options.software:
        packages.installed(name=f"Install {software}", packages=names(node.family, software).packages)
    if options.arrays:
        _arrays(node, options)
    for name, group in options.volume_groups.items():
        volumes.group(
            name=f"Create volume group {name}",
            group=name,
            arrays=tuple(part for part in group.on if part in options.arrays),
            disks=tuple(options.selector(part, node.name) for part in group.on if part in options.disks),
        )
        for volume, size in group.volumes.items():
            volumes.volume(name=f"Create volume {name}/{volume}", group=name, volume=volume, size=size)
    for path, filesystem in options.filesystems.items():
        _filesystem(node, options, path, filesystem)


def _arrays(node: Node, options: StorageLayoutOptions) -> None:
    path = names(node.family, "mdadm").paths["arrays"]
    files.directory(name="Create the folder for mdadm settings", path=str(PurePosixPath(path).parent))
    files.file(name="Write the arrays to mdadm.conf", path=path, content=mdadm_conf(node, options))
    for name, array in options.arrays.items():
        arrays.array(
            name=f"Create array {name}",
            array=name,
            level=str(array.level),
            disks=tuple(options.selector(disk, node.name) for disk in array.disks),
            spares=tuple(options.selector(disk, node.name) for disk in array.spares),
            chunk_kib=array.chunk_kib,
            lvm=options.uses_lvm,
        )


def _filesystem(node: Node, options: StorageLayoutOptions, path: str, one: FilesystemOptions) -> None:
    disk = options.selector(one.on, node.name) if one.on in options.disks else None
    filesystems.filesystem(
        name=f"Create the filesystem for {path}",
        path=device(node, options, one),
        type=one.type,
        label=one.label,
        disk=disk,
        lvm=options.uses_lvm,
    )
    unit = f"/etc/systemd/system/{unit_name(path)}"
    if disk is None:
        text = mount_unit(path, one, device(node, options, one))
        files.file(name=f"Write the mount unit for {path}", path=unit, content=text)
    else:
        filesystems.mount_unit_of_disk(
            name=f"Write the mount unit for {path}",
            path=unit,
            disk=disk,
            content=mount_unit(path, one, DEVICE),
            lvm=options.uses_lvm,
        )
    filesystems.mounted(name=f"Mount {path}", path=path, unit_file=unit, lvm=options.uses_lvm)
    files.directory(
        name=f"Set the permissions of {path}", path=path, mode=one.mode, owner=one.owner, group=one.group
    )
