"""Storage of a node, as data."""

from __future__ import annotations

from dataclasses import dataclass, field

from rackwright.boundary import printable


@dataclass(frozen=True)
class Signature:
    """One thing that libblkid recognises on a device."""

    device: str
    type: str
    offset: str
    uuid: str = ""
    label: str = ""

    def __str__(self) -> str:
        where = "".join(
            f" {key}={value}" for key, value in (("LABEL", self.label), ("UUID", self.uuid)) if value
        )
        return f"{self.type}{where} on {self.device} at {self.offset}"


@dataclass(frozen=True)
class Disk:
    """One drive; `name` is the kernel's of this boot (`nvme0n1`), `size` is in bytes."""

    name: str
    size: int
    serial: str | None
    """None: it has none that can be used."""
    slots: tuple[str, ...]
    """PCI address of its controller and udev's ID_PATH."""
    links: tuple[str, ...]
    signatures: tuple[Signature, ...] | None
    """None: they could not be read."""
    digest: str | None
    """SHA-256 of the signatures as the node prints them."""
    uses: tuple[str, ...]
    """What holds it or something on it: mounts, swap, arrays, volumes."""
    read_only: bool = False

    @property
    def device(self) -> str:
        return f"/dev/{self.name}"

    @property
    def description(self) -> str:
        return f"{self.device} (serial {self.serial}, {self.size / 1e9:.1f} GB)"

    @property
    def content(self) -> str:
        """Its signatures, for the plan."""
        if not self.signatures:
            return "no signature"
        return printable("; ".join(map(str, self.signatures)), 2000)


@dataclass(frozen=True)
class Array:
    """An md array of this boot; `size` is in bytes."""

    name: str
    values: dict[str, str]
    members: dict[str, str]
    """Kernel's name of a member -> its state (`in_sync`, `spare`, `faulty`, ...)."""
    title: str = ""
    """The name it was created with, without the host's."""
    links: tuple[str, ...] = ()
    size: int = 0

    @property
    def device(self) -> str:
        return f"/dev/{self.name}"

    def value(self, key: str) -> str:
        return self.values.get(key, "")


@dataclass(frozen=True)
class Mount:
    """What is mounted on a folder now."""

    source: str
    type: str
    options: frozenset[str]


@dataclass(frozen=True)
class Storage:
    """All of it; `complete` is False where the node did not answer to its end."""

    complete: bool = False
    disks: tuple[Disk, ...] = ()
    arrays: tuple[Array, ...] = ()
    groups: dict[str, dict[str, str]] = field(default_factory=dict)
    """LVM volume groups by name."""
    physical: dict[str, str] = field(default_factory=dict)
    """Physical volume -> its volume group, empty: none."""
    volumes: dict[str, dict[str, str]] = field(default_factory=dict)
    """Logical volumes by `group/volume`."""
    on: dict[str, tuple[Signature, ...]] = field(default_factory=dict)
    """Signatures on arrays (/dev/md127) and volumes (/dev/mapper/...)."""
    mounts: dict[str, Mount] = field(default_factory=dict)

    def array(self, title: str) -> Array | None:
        """The array of this name, which udev or the superblock of a member has."""
        return next((array for array in self.arrays if title in (array.title, self._label(array))), None)

    def members_of(self, name: str) -> tuple[Disk, ...]:
        """Disks that hold the superblock of this array, `HOST:NAME`, assembled or not."""
        return tuple(disk for disk in self.disks if _member_of(disk) == name)

    def signatures_on(self, device: str) -> tuple[Signature, ...] | None:
        """What is on an array or volume; None: it could not be read."""
        return self.on.get(device)

    def _label(self, array: Array) -> str | None:
        labels = (_member_of(disk) for disk in self.disks if disk.name in array.members)
        return next((label.rpartition(":")[2] for label in labels if label is not None), None)


def _member_of(disk: Disk) -> str | None:
    """Name of the array whose superblock is on the disk, with that of its host."""
    found = (one for one in disk.signatures or () if one.type == "linux_raid_member")
    return next((one.label for one in found), None)
