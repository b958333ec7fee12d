"""cpio archives that the kernel unpacks into an initramfs: the format `newc`, cpio(5)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_MAGIC, _LAST = b"070701", "TRAILER!!!"
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or, without content, a folder, owned by root."""

    path: str
    content: bytes | None
    mode: int


def archive(entries: Sequence[Entry]) -> bytes:
    """A small archive of these entries, in order; a folder comes before its contents."""
    parts = []
    for number, entry in enumerate(entries, start=1):
        kind = stat.S_IFDIR if entry.content is None else stat.S_IFREG
        content = entry.content or b""
        parts.append(_header(entry.path, number, kind | entry.mode, len(content)) + _padded(content))
    return b"".join([*parts, _header(_LAST, 0, 0, 0)])


def write_tree(tree: Path, target: IO[bytes]) -> None:
    """The archive of a whole tree, with the files' times and owners."""
    for number, path in enumerate(_walk(tree), start=1):
        found = os.lstat(path)
        kind, name = stat.S_IFMT(found.st_mode), path.relative_to(tree).as_posix()
        if kind == stat.S_IFLNK:
            content = os.fsencode(os.readlink(path))
            target.write(_header(name, number, found.st_mode, len(content), found) + _padded(content))
        elif kind == stat.S_IFREG:
            target.write(_header(name, number, found.st_mode, found.st_size, found))
            with path.open("rb") as file:
                while block := file.read(_BLOCK):
                    target.write(block)
            target.write(b"\0" * (-found.st_size % 4))
        elif kind == stat.S_IFDIR:
            target.write(_header(name, number, found.st_mode, 0, found))
    target.write(_header(_LAST, 0, 0, 0))


def _walk(tree: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(tree):
        folders.sort()
        if Path(folder) != tree:
            yield Path(folder)
        yield from (Path(folder, name) for name in sorted(files))
        yield from (Path(folder, name) for name in folders if Path(folder, name).is_symlink())


def _header(name: str, number: int, mode: int, size: int, found: os.stat_result | None = None) -> bytes:
    encoded = os.fsencode(name) + b"\0"
    owner = (found.st_uid, found.st_gid) if found is not None else (0, 0)
    time = int(found.st_mtime) if found is not None else 0
    # ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
    fields = (number, mode, *owner, 1, time, size, 0, 0, 0, 0, len(encoded), 0)
    return _padded(_MAGIC + b"".join(b"%08x" % field for field in fields) + encoded)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
