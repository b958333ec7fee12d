"""Options of the storage_layout role."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.disks import SERIAL, SUPERBLOCK_NAME_MAX, Selector
from rackwright.model.interfaces import WritesUnitFiles
from rackwright.model.mount_names import unit_name
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.platforms import Capability, why_lacking
from rackwright.model.storage import MakesFilesystems
from rackwright.model.strings import GroupName, UserName
from rackwright.model.text import mistake

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,14}$")]
"""Of disks, arrays, groups and volumes. No dash: device-mapper doubles it."""
_SIZE = re.compile(r"[1-9][0-9]{0,6}GiB|[1-9][0-9]?%|100%|rest")
_PATH = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9._-]*)+")
_SYSTEM = (
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var",
)
LEAST = {0: 2, 1: 2, 5: 3, 6: 4, 10: 2}
"""Disks that an array of each level has at least (md(4); mdadm makes RAID 10 of two)."""
LABEL_MAX = {"xfs": 12, "ext4": 16}
"""Bytes of a label (mkfs.xfs(8), mke2fs(8))."""


class DiskChoice(Frozen):
    """How a disk is found on each node of the group: by its slot, or by its serial."""

    slot: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9:.+-]{4,64}$",
        description="PCI address of the drive, e.g. `0000:05:00.0`, or udev's ID_PATH: equal on nodes of one SKU.",
    )
    serials: dict[str, str] = Field(default_factory=dict, description="Serial of the disk, by node.")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.slot is None) == (not self.serials):
            raise mistake("A disk is declared by its `slot`, or by its `serials` by node: one of the two.")
        for serial in self.serials.values():
            if not SERIAL.fullmatch(serial):
                raise mistake(
                    f"{serial!r} is not the serial of a disk.", "lsblk -dno NAME,SERIAL prints them"
                )
        return self


class ArrayOptions(Frozen):
    """An md array, /dev/md/NAME."""

    level: Literal[0, 1, 5, 6, 10] = Field(description="RAID level.")
    disks: tuple[Name, ...] = Field(description="Its disks.")
    spares: tuple[Name, ...] = Field(default=(), description="Disks that replace a failed one at once.")
    chunk_kib: int | None = Field(default=None, ge=4, le=65536, description="KiB; None: mdadm's default.")

    @model_validator(mode="after")
    def _has_disks(self) -> Self:
        if len(self.disks) < LEAST[self.level]:
            raise mistake(
                f"RAID {self.level} needs {LEAST[self.level]} disks or more, and has {len(self.disks)}."
            )
        if self.spares and self.level == 0:
            raise mistake("RAID 0 cannot use a spare: its data is lost with its first disk.")
        if self.chunk_kib is not None and (self.chunk_kib & (self.chunk_kib - 1) or self.level == 1):
            raise mistake("`chunk_kib` is a power of two, and RAID 1 has no chunks.")
        return self


class GroupOptions(Frozen):
    """An LVM volume group."""

    on: tuple[Name, ...] = Field(min_length=1, description="Arrays and disks it is on.")
    volumes: dict[Name, str] = Field(
        default_factory=dict, description="Size of each volume: `100GiB`, `60%` of the group, or `rest`."
    )

    @field_validator("volumes")
    @classmethod
    def _are_sizes(cls, volumes: dict[str, str]) -> dict[str, str]:
        for name, size in volumes.items():
            if not _SIZE.fullmatch(size):
                raise mistake(f"{size!r} is not the size of a volume ({name}).", "100GiB, 60% or rest")
        if list(volumes.values())[:-1].count("rest"):
            raise mistake("Only the last volume of a group can have the `rest`.")
        if sum(int(size[:-1]) for size in volumes.values() if size.endswith("%")) > 100:
            raise mistake("The volumes of a group have more than 100% of it.")
        return volumes


class FilesystemOptions(Frozen):
    """A filesystem and how it is mounted."""

    on: str = Field(
        pattern=r"^[a-z][a-z0-9_]*(/[a-z][a-z0-9_]*)?$", description="An array, a disk, or GROUP/VOLUME."
    )
    type: Literal["xfs", "ext4"] = Field(default="xfs", description="Of the filesystem.")
    label: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._-]+$", description="Of the filesystem.")
    mount_options: tuple[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:=-]+$")], ...] = Field(
        default=("noatime",), description="As mount(8) takes them, e.g. `prjquota` for project quotas of XFS."
    )
    mode: str = Field(default="755", pattern=r"^[0-7]{3,4}$", description="Of its root folder, octal.")
    owner: UserName = Field(default="root", description="Of its root folder.")
    group: GroupName = Field(default="root", description="Of its root folder.")

    @model_validator(mode="after")
    def _has_a_label_that_fits(self) -> Self:
        if self.label is not None and len(self.label) > LABEL_MAX[self.type]:
            raise mistake(f"A label of {self.type} has at most {LABEL_MAX[self.type]} characters.")
        return self


class StorageLayoutOptions(RoleOptions, WritesUnitFiles, MakesFilesystems):
    """Arrays, volumes and filesystems on declared disks. A disk that holds anything needs its serial typed."""

    disks: dict[Name, DiskChoice] = Field(
        min_length=1, description="The disks it may use, each by a name of yours."
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
            if not _PATH.fullmatch(path) or path in _SYSTEM:
                raise mistake(f"{path} cannot be mounted on.", "an absolute path of its own, e.g. /scratch")
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
        names = (*self.disks, *self.arrays, *self.volume_groups)
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{name} is the name of several things: disks, arrays and volume groups have names of their own."
        used: dict[str, str] = {}
        for user, parts in self._users():
            for part in parts:
                if part not in self.disks and (user.startswith("the array") or part not in self._devices()):
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

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """Its mount units."""
        return tuple(f"/etc/systemd/system/{unit_name(path)}" for path in self.filesystems)

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Platforms without disks, nodes without a serial, serials used twice, names that do not fit."""
        for node in cluster.running("storage_layout", self):
            if (why := why_lacking(node.platform, Capability.DISKS)) is not None:
                yield "", f"storage_layout cannot run on {node.name}: {why}.", "take the role from such nodes"
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
                        "a disk is in one node: compare with `lsblk -dno NAME,SERIAL` on both",
                    )
