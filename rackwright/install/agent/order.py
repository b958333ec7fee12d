"""The head's order: the disks that may be written, their new contents, and the node's files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from rackwright.install.agent.programs import AgentError

_RUN = re.compile(r"[a-z0-9]{1,16}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_DEVICE = re.compile(r"/dev/[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk, and exactly what it may contain before it is written."""

    path: str
    serial: str | None
    signatures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Image:
    """root.tar.zst as the head serves it."""

    size: int
    sha256: str
    name: str


@dataclass(frozen=True, slots=True)
class File:
    """A file of the node, in addition to the image."""

    path: str
    content: str = field(repr=False)
    mode: int
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of the node that root does not own, such as the administrator's home."""

    path: str
    mode: int
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Encryption:
    """How the root is unlocked at boot, and the recovery key for an operator."""

    kind: str
    recovery_key: str = field(repr=False)
    tang: str | None
    thumbprint: str | None


@dataclass(frozen=True, slots=True)
class Order:
    """One installation."""

    node: str
    run: str
    disks: tuple[Disk, ...]
    mirror: bool
    lvm: bool
    encryption: Encryption | None
    image: Image
    folders: tuple[Folder, ...]
    """Folders that must exist before the files, outer ones first."""
    files: tuple[File, ...]
    kernel_arguments: str

    @property
    def unfinished(self) -> str:
        """Partition name prefix until the last step."""
        return f"rw-unfinished-{self.run}"


def parse(data: dict[str, Any], run: str, *, ramdisk: bool = False) -> Order:
    """The head's `install` object; AgentError if it is incomplete or belongs to another run."""
    try:
        order = Order(
            node=str(data["node"]),
            run=str(data["run"]),
            disks=() if ramdisk else tuple(read_disk(one) for one in data["disks"]),
            mirror=bool(data.get("mirror", False)),
            lvm={"plain": False, "lvm": True}[data.get("volumes", "plain")],
            encryption=_encryption(data.get("encryption")),
            image=_image(data["image"]),
            folders=tuple(_folder(one) for one in data.get("folders", ())),
            files=tuple(_file(one) for one in data["files"]),
            kernel_arguments=" ".join(str(data["kernel_arguments"]).split()),
        )
    except (KeyError, TypeError, ValueError) as error:
        name = error.args[0] if isinstance(error, KeyError) else type(error).__name__
        raise AgentError(f"the head's install object is incomplete: {name}") from None
    if order.run != run or not _RUN.fullmatch(order.run):
        raise AgentError(f"the head ordered run {order.run!r}, but this machine was booted for run {run}")
    wanted = 2 if order.mirror else 1
    paths = {disk.path for disk in order.disks}
    if not ramdisk and (len(order.disks) != wanted or len(paths) != wanted):
        raise AgentError(
            f"the layout needs {wanted} disks, but the head named {', '.join(sorted(paths)) or 'none'}"
        )
    return order


def read_disk(data: dict[str, Any]) -> Disk:
    """A disk as the head names it; KeyError for an unknown path."""
    path = str(data["path"])
    if not _DEVICE.fullmatch(path):
        raise KeyError("disks.path")
    return Disk(path, data["serial"], tuple(map(str, data["signatures"])))


def _image(data: dict[str, Any]) -> Image:
    image = Image(int(data["size"]), str(data["sha256"]), str(data.get("name", "image")))
    if image.size < 1 or not _DIGEST.fullmatch(image.sha256):
        raise KeyError("image")
    return image


def _file(data: dict[str, Any]) -> File:
    path = _path(data, "files")
    return File(path, str(data["content"]), int(data["mode"]), *_owner(data))


def _folder(data: dict[str, Any]) -> Folder:
    return Folder(_path(data, "folders"), int(data["mode"]), *_owner(data))


def _owner(data: dict[str, Any]) -> tuple[int, int]:
    return int(data.get("uid", 0)), int(data.get("gid", 0))


def _path(data: dict[str, Any], what: str) -> str:
    path = str(data["path"])
    if not path.startswith("/") or ".." in path.split("/"):
        raise KeyError(f"{what}.path")
    return path


def _encryption(data: dict[str, Any] | None) -> Encryption | None:
    if data is None:
        return None
    kind = str(data["kind"])
    if kind not in ("tpm2", "tang") or not data["recovery_key"] or (kind == "tang" and not data["tang"]):
        raise KeyError("encryption")
    return Encryption(kind, str(data["recovery_key"]), data.get("tang"), data.get("thumbprint"))
