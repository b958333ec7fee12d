"""Checks of the storage_layout role: disks, arrays, volumes, mounts. What cannot be read is UNKNOWN."""

from __future__ import annotations

from collections.abc import Callable

from rackwright.boundary import printable
from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.units import runs
from rackwright.facts.block_devices import BlockDevices
from rackwright.facts.block_records import Disk, Storage
from rackwright.facts.disk_choice import NoDisk, NotChosen, chosen, signatures_at, stable_link, wanted_bytes
from rackwright.model.cluster import Node
from rackwright.model.disks import DEVICE, Selector, volume_path
from rackwright.model.mount_names import unit_name
from rackwright.osfamily.names import names
from rackwright.roles.storage_layout.options import StorageLayoutOptions
from rackwright.roles.storage_layout.readings import array_faults
from rackwright.roles.storage_layout.sections import ArrayOptions, FilesystemOptions
from rackwright.roles.storage_layout.texts import device, mdadm_conf, mount_unit

_SIZE_TOLERANCE = 0.05
"""Of a drive's size: a namespace is a little smaller or larger than its maker's round figure."""
Context = CheckContext[StorageLayoutOptions]


def _layout(context: Context) -> StorageLayoutOptions:
    return context.options.on_node(context.node)


def _storage(context: Context) -> Storage:
    return context.fact(BlockDevices, lvm=_layout(context).uses_lvm)


def _disk(there: Storage, selector: Selector) -> Disk:
    try:
        return chosen(there, selector)
    except NoDisk as error:
        fail(printable(error.message, 200))
    except NotChosen as error:
        raise Undetermined(printable(error.message, 200)) from error


def _disks(context: Context) -> str:
    there, sizes = _storage(context), [group.size_gb for group in context.node.sku.nvme]
    found = [
        _disk(there, _layout(context).selector(name, context.node.name)) for name in _layout(context).disks
    ]
    for disk in found:
        if not disk.name.startswith("nvme"):
            continue  # the SKU lists its NVMe drives alone
        is_size = any(abs(disk.size / 1e9 - size) <= size * _SIZE_TOLERANCE for size in sizes)
        if sizes and not is_size:
            wanted = " or ".join(f"{size} GB" for size in sorted(set(sizes)))
            fail(f"{disk.description} is not a drive of {context.node.sku.name}, which has {wanted}")
    return ", ".join(disk.description for disk in found)


def _arrays(context: Context) -> str:
    there = _storage(context)
    judged = [_array(context, there, name, array) for name, array in _layout(context).arrays.items()]
    if rebuilding := [text for text, is_whole in judged if not is_whole]:
        raise Warned("; ".join(rebuilding))
    return "; ".join(text for text, _ in judged)


def _array(context: Context, there: Storage, name: str, array: ArrayOptions) -> tuple[str, bool]:
    """What it is, and whether it is whole; FAIL where it is not and nothing is done about it."""
    found = there.array(name)
    if found is None:
        fail(f"the array {name} is not running")
    node = context.node.name
    declared = {}
    for disk in (*array.disks, *array.spares):
        selector = _layout(context).selector(disk, node)
        try:
            declared[chosen(there, selector).name] = str(selector)
        except NotChosen:
            declared[str(selector)] = f"{selector}, which is missing"
    faults, rebuild = array_faults(found, f"raid{array.level}", len(array.disks), declared)
    if rebuild is not None and not faults:
        return f"{name} is {rebuild}", False
    if faults:
        fail(f"{name}: {'; '.join(faults)}")
    return f"{name} is {found.value('array_state')}, {len(found.members)} members", True


def _volumes(context: Context) -> str:
    there, found = _storage(context), []
    for group, options in _layout(context).volume_groups.items():
        if group not in there.groups:
            fail(f"the volume group {group} is missing, or lvm2 does not list it")
        for volume, size in options.volumes.items():
            row = there.volumes.get(f"{group}/{volume}")
            if row is None:
                fail(f"the volume {group}/{volume} is missing")
            has, wants = int(row["lv_size"]), wanted_bytes(there, group, volume, size)
            if abs(has - wants) >= int(there.groups[group]["vg_extent_size"]):
                fail(f"{group}/{volume} has {has / 2**30:.1f} GiB, not {wants / 2**30:.1f} GiB ({size})")
            found.append(f"{group}/{volume} {has / 2**30:.1f} GiB")
    return ", ".join(found) or "no volume is declared"


def _mounted(context: Context) -> str:
    there = _storage(context)
    return ", ".join(
        _filesystem(context, there, path, one) for path, one in _layout(context).filesystems.items()
    )


def _filesystem(context: Context, there: Storage, path: str, one: FilesystemOptions) -> str:
    found = there.mounts.get(path)
    if found is None:
        fail(f"{path} is not mounted from a block device")
    if found.type != one.type:
        fail(f"{path} is {found.type}, not {one.type}")
    if found.source not in _sources(context, there, one):
        fail(f"{path} is mounted from {found.source}, not from {one.on}")
    if "ro" in found.options:
        fail(f"{path} is read-only")
    wanted = {_SHOWN_AS.get((one.type, option), option) for option in one.mount_options}
    if missing := sorted((wanted & _SHOWN) - found.options):
        fail(f"{path} is mounted without {', '.join(missing)}")
    return f"{path} ({one.type} from {found.source})"


_XFS_QUOTAS = {
    "usrquota": ("quota", "uquota"),
    "uqnoenforce": ("qnoenforce",),
    "grpquota": ("gquota",),
    "prjquota": ("pquota",),
}
_SHOWN_AS = {("xfs", name): shown for shown, names in _XFS_QUOTAS.items() for name in names}
"""Options that the kernel lists by another name (Linux 6.12, fs/xfs/xfs_super.c, xfs_fs_show_options;
read 2026-11-26)."""
_SHOWN = frozenset(
    (
        *("noatime", "nodiratime", "relatime", "nodev", "nosuid", "noexec", "discard"),
        *("usrquota", "uqnoenforce", "grpquota", "gqnoenforce", "prjquota", "pqnoenforce"),
    )
)
"""Options that the kernel lists for a mount; others it leaves out."""


def _sources(context: Context, there: Storage, one: FilesystemOptions) -> tuple[str, ...]:
    group, _, volume = one.on.partition("/")
    if volume:
        return (volume_path(group, volume),)
    if group in _layout(context).arrays:
        found = there.array(group)
        return (found.device,) if found is not None else ()
    return (_disk(there, _layout(context).selector(group, context.node.name)).device,)


def _types(context: Context) -> str:
    """What libblkid finds, besides what is mounted: it is what the next boot mounts."""
    there = _storage(context)
    for path, one in _layout(context).filesystems.items():
        on_disk = one.on in _layout(context).disks
        selector = _layout(context).selector(one.on, context.node.name) if on_disk else None
        found = (
            _disk(there, selector).signatures
            if selector is not None
            else signatures_at(there, device(context.node, _layout(context), one))
        )
        if found is None:
            raise Undetermined(f"the signatures on {one.on} cannot be read")
        if [signature.type for signature in found] != [one.type]:
            fail(f"{one.on} ({path}) holds {'; '.join(map(str, found)) or 'nothing'}, not {one.type} alone")
    return ", ".join(f"{one.on}: {one.type}" for one in _layout(context).filesystems.values())


def _at_boot(context: Context) -> str:
    return ", ".join(runs(context, unit_name(path)) for path in _layout(context).filesystems)


def _files(context: Context) -> str:
    node, options, texts = context.node, _layout(context), {}
    if options.arrays:
        texts[names(node.family, "mdadm").paths["arrays"]] = mdadm_conf(node, options)
    for path, one in options.filesystems.items():
        disk = options.selector(one.on, node.name) if one.on in options.disks else None
        text = mount_unit(path, one, device(context.node, options, one) if disk is None else DEVICE)
        if disk is not None:
            text = text.replace(DEVICE, stable_link(_disk(_storage(context), disk)))
        texts[f"/etc/systemd/system/{unit_name(path)}"] = text
    return as_rendered(context, texts)


def _has(part: str) -> Callable[[Node, StorageLayoutOptions], bool]:
    return lambda node, options: bool(getattr(options, part))


CHECKS: tuple[Check, ...] = (
    Check("the declared disks are present", _disks),
    Check("the arrays are complete and use their declared disks", _arrays, applies=_has("arrays")),
    Check("the volumes have their declared sizes", _volumes, applies=_has("volume_groups")),
    Check("the filesystems have their declared types", _types, applies=_has("filesystems")),
    Check("the filesystems are mounted as declared", _mounted, applies=_has("filesystems")),
    Check("the filesystems are mounted at boot", _at_boot, applies=_has("filesystems")),
    Check("arrays and mounts are configured in mdadm and systemd", _files),
)
