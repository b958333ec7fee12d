"""Options of the storage_layout role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.disks import SUPERBLOCK_NAME_MAX, Selector
from rackwright.model.interfaces import WritesUnitFiles
from rackwright.model.mount_names import unit_name
from rackwright.model.mount_points import belongs_to_system, is_absolute
from rackwright.model.options import RoleOptions
from rackwright.model.platforms import Capability, why_lacking
from rackwright.model.storage import MakesFilesystems
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole
from rackwright.roles.storage_layout.sections import (
    LEAST,
    ArrayOptions,
    DiskChoice,
    FilesystemOptions,
    GroupOptions,
    Name,
)
from rackwright.roles.storage_layout.sku_disks import missing, named, slots_of, spread

SetName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z_]{0,11}$")]
"""Of a set of drives: without digits, and short enough for a number after it."""


class StorageLayoutOptions(RoleOptions, WritesUnitFiles, MakesFilesystems):
    """Arrays, volumes and filesystems on declared disks. A disk that holds data is used only after its serial is typed."""

    on: tuple[NodeRole, ...] | None = Field(
        default=None, min_length=1, description="Node roles whose nodes get it. None: every node."
    )
    disks: dict[Name, DiskChoice] = Field(
        default_factory=dict, description="The disks it may use, each by a name of yours."
    )
    sku_disks: dict[SetName, str] = Field(
        default_factory=dict,
        description="Sets of drives by the `use` that the SKU gives them, e.g. `{data: scratch}`: `data` stands for "
        "data0, data1, ..., in the order of the SKU's `slots`.",
    )
    arrays: dict[Name, ArrayOptions] = Field(default_factory=dict, description="md arrays by name.")
    volume_groups: dict[Name, GroupOptions] = Field(
        default_factory=dict, description="LVM volume groups by name."
    )
    filesystems: dict[str, FilesystemOptions] = Field(
        default_factory=dict, description="Filesystems by the folder each is mounted on."
    )

    @field_validator("filesystems")
    @classmethod
    def _are_folders(cls, filesystems: dict[str, FilesystemOptions]) -> dict[str, FilesystemOptions]:
        for path in filesystems:
            if not is_absolute(path):
                raise mistake(f"{path} is not usable as a mount point.", "an absolute path, e.g. /scratch")
            if belongs_to_system(path):
                raise mistake(
                    f"{path} is not usable as a mount point: the operating system needs it.", "e.g. /scratch"
                )
            outer = [other for other in filesystems if path.startswith(f"{other}/")]
            if outer:
                raise mistake(f"{path} is below {outer[0]}, which is a filesystem of this role too.")
        return filesystems

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        for message in self._contradictions():
            raise mistake(message)
        return self

    def _contradictions(self) -> Iterable[str]:
        if not self.disks and not self.sku_disks:
            yield "No disk is declared: name some under `disks`, or those of the SKU under `sku_disks`."
        names = (*self.disks, *self.sku_disks, *self.arrays, *self.volume_groups)
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{name} names several things: disks, arrays and volume groups need distinct names."
        for name in self.disks:
            if name.rstrip("0123456789") in self.sku_disks and name[-1].isdigit():
                yield f"{name} is the name of a drive of the set {name.rstrip('0123456789')} too."
        for array in self.arrays.values():
            if len(array.disks) < LEAST[array.level] and self.sku_disks.keys().isdisjoint(array.disks):
                yield f"RAID {array.level} needs at least {LEAST[array.level]} disks, but has {len(array.disks)}."
        used: dict[str, str] = {}
        for user, parts in self._users():
            for part in parts:
                if part not in (*self.disks, *self.sku_disks) and (
                    user.startswith("the array") or part not in self._devices()
                ):
                    yield f"{user} is on {part}, which is not declared."
                elif part in used:
                    yield f"{part} is used by {used[part]} and by {user}."
                used[part] = user
        for slot in [choice.slot for choice in self.disks.values() if choice.slot is not None]:
            if [choice.slot for choice in self.disks.values()].count(slot) > 1:
                yield f"Two disks are in the slot {slot}."
                break

    def _users(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        for name, array in self.arrays.items():
            yield f"the array {name}", (*array.disks, *array.spares)
        for name, group in self.volume_groups.items():
            yield f"the volume group {name}", group.on
        for path, filesystem in self.filesystems.items():
            yield path, (filesystem.on,)

    def _devices(self) -> set[str]:
        """What a group or a filesystem can be on, besides disks."""
        volumes = {
            f"{name}/{volume}" for name, group in self.volume_groups.items() for volume in group.volumes
        }
        return {*self.arrays, *volumes}

    def runs_on(self, node: Node) -> bool:
        """On nodes that hold one of `on`."""
        return super().runs_on(node) and (self.on is None or node.holds(*self.on))

    def on_node(self, node: Node) -> StorageLayoutOptions:
        """These options with the node's own drives in the place of each set."""
        if not self.sku_disks:
            return self
        drives = named(self.sku_disks, node)
        slots = {name: DiskChoice(slot=slot) for each in drives.values() for name, slot in each.items()}
        arrays = {
            name: one.model_copy(
                update={"disks": spread(one.disks, drives), "spares": spread(one.spares, drives)}
            )
            for name, one in self.arrays.items()
        }
        groups = {
            name: one.model_copy(update={"on": spread(one.on, drives)})
            for name, one in self.volume_groups.items()
        }
        alone = {name: next(iter(each)) for name, each in drives.items() if len(each) == 1}
        filesystems = {
            path: one.model_copy(update={"on": alone.get(one.on, one.on)})
            for path, one in self.filesystems.items()
        }
        return self.model_copy(
            update={
                "disks": {**self.disks, **slots},
                "sku_disks": {},
                "arrays": arrays,
                "volume_groups": groups,
                "filesystems": filesystems,
            }
        )

    def selector(self, disk: str, node: str) -> Selector:
        """How a disk is found on a node."""
        choice = self.disks[disk]
        return Selector(disk, choice.serials.get(node), choice.slot)

    @property
    def uses_lvm(self) -> bool:
        """Whether there is a volume group."""
        return bool(self.volume_groups)

    @property
    def software(self) -> tuple[str, ...]:
        """What it needs, by the names of rackwright.osfamily."""
        types: Mapping[str, str] = {"xfs": "xfsprogs", "ext4": "e2fsprogs"}
        wanted = {types[one.type] for one in self.filesystems.values()}
        wanted |= {"mdadm"} if self.arrays else set()
        wanted |= {"lvm2"} if self.volume_groups else set()
        return tuple(sorted(wanted))

    def made_filesystems(self, node: Node) -> Mapping[str, str]:
        """Its filesystems; the same on every node of the group."""
        return {path: one.type for path, one in self.filesystems.items()}

    def made_options(self, node: Node) -> Mapping[str, tuple[str, ...]]:
        """How they are mounted."""
        return {path: one.mount_options for path, one in self.filesystems.items()}

    def made_access(self, node: Node) -> Mapping[str, tuple[str, str]]:
        """Owner and mode of their root folders."""
        return {path: (one.owner, one.mode) for path, one in self.filesystems.items()}

    def data_disks(self, node: Node) -> tuple[Selector, ...]:
        """Its disks, those of the SKU among them."""
        there = self.on_node(node)
        return tuple(there.selector(disk, node.name) for disk in there.disks)

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """Its mount units."""
        return tuple(f"/etc/systemd/system/{unit_name(path)}" for path in self.filesystems)

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Platforms without disks, nodes without a serial, serials used twice, names that do not fit."""
        for node in cluster.running("storage_layout", self):
            if (why := why_lacking(node.platform, Capability.DISKS)) is not None:
                yield (
                    "",
                    f"storage_layout cannot run on {node.name}: {why}.",
                    "remove the role from such nodes",
                )
            seen: dict[str, str] = {}
            for name, choice in self.disks.items():
                serial = choice.serials.get(node.name)
                if choice.slot is None and serial is None:
                    yield f"disks.{name}.serials", f"{node.name} has no serial for the disk {name}.", None
                elif serial is not None and serial in seen:
                    yield (
                        f"disks.{name}.serials",
                        f"{name} and {seen[serial]} have the same serial on {node.name}.",
                        None,
                    )
                elif serial is not None:
                    seen[serial] = name
            for name in self.arrays:
                if len(f"{node.name}:{name}") > SUPERBLOCK_NAME_MAX:
                    yield (
                        f"arrays.{name}",
                        f"{node.name}:{name} is longer than an md array's name can be.",
                        None,
                    )
        yield from self._unknown_nodes(cluster)
        yield from self._sku_problems(cluster)

    def _sku_problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        nodes = cluster.running("storage_layout", self)
        yield from missing(self.sku_disks, nodes)
        seen: set[str] = set()
        for node in nodes:
            if not all(slots_of(node, use) for use in self.sku_disks.values()):
                continue
            there = self.on_node(node)
            several = [path for path, one in there.filesystems.items() if one.on in self.sku_disks]
            for path in several:
                on = there.filesystems[path].on
                yield (
                    f"filesystems.{path}.on",
                    f"{path} is on {on}, which is several drives of {node.name}: a filesystem needs one device.",
                    f"make an array of them, e.g. `arrays: {{fast: {{level: 0, disks: [{on}]}}}}`",
                )
            for message in there._contradictions():
                if message not in seen and not several:
                    seen.add(message)
                    yield "sku_disks", f"{node.name} ({node.sku.name}): {message}", None

    def _unknown_nodes(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        owners: dict[str, str] = {}
        for name, choice in self.disks.items():
            for node, serial in choice.serials.items():
                if node not in cluster.by_name:
                    yield f"disks.{name}.serials.{node}", f"There is no node {node}.", None
                elif owners.setdefault(serial, node) != node:
                    yield (
                        f"disks.{name}.serials.{node}",
                        f"The disk {serial} is in {owners[serial]} too.",
                        "compare `lsblk -dno NAME,SERIAL` on both nodes",
                    )
