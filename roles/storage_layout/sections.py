"""Parts of the options of the storage_layout role: disks, arrays, volume groups, filesystems."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, ValidationInfo, field_validator, model_validator

from rackwright.model.disks import SERIAL
from rackwright.model.options import Frozen
from rackwright.model.strings import GroupName, UserName
from rackwright.model.text import mistake
from rackwright.roles.storage_layout.mount_words import word_mistakes

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,14}$")]
"""Of disks, arrays, groups and volumes. No dash: device-mapper doubles it."""
_SIZE = re.compile(r"[1-9][0-9]{0,6}GiB|[1-9][0-9]?%|100%|rest")
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
    disks: tuple[Name, ...] = Field(min_length=1, description="Its disks, or a set of `sku_disks`.")
    spares: tuple[Name, ...] = Field(default=(), description="Disks that replace a failed one at once.")
    chunk_kib: int | None = Field(default=None, ge=4, le=65536, description="KiB; None: mdadm's default.")

    @model_validator(mode="after")
    def _fits_its_level(self) -> Self:
        if self.spares and self.level == 0:
            raise mistake("RAID 0 cannot use a spare: its data is lost with its first disk.")
        if self.chunk_kib is not None and (self.chunk_kib & (self.chunk_kib - 1) or self.level == 1):
            raise mistake("`chunk_kib` is a power of two, and RAID 1 has no chunks.")
        return self


class GroupOptions(Frozen):
    """An LVM volume group."""

    on: tuple[Name, ...] = Field(min_length=1, description="Arrays, disks and sets of `sku_disks` it is on.")
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

    @field_validator("mount_options")
    @classmethod
    def _are_options_of_its_type(cls, options: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        for message, hint in word_mistakes(info.data["type"], options) if "type" in info.data else ():
            raise mistake(message, hint)
        return options

    @model_validator(mode="after")
    def _has_a_label_that_fits(self) -> Self:
        if self.label is not None and len(self.label) > LABEL_MAX[self.type]:
            raise mistake(f"A label of {self.type} has at most {LABEL_MAX[self.type]} characters.")
        return self
