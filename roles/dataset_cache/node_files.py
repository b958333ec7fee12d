"""Files of a dataset: sizes, checksums, access. Runs on the node: standard library, Python 3.9."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import stat
from collections.abc import Iterator

_BLOCK = 1 << 20
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


class FilesMistake(ValueError):  # noqa: N818 - printed as a sentence
    """Files are not what a dataset may have, or not what they were."""


def walk(top: str) -> Iterator[tuple[str, os.stat_result]]:
    """Path below a folder, and what it is, of everything in it; links are not followed. Folders come after their content."""
    for folder, folders, files in os.walk(top, topdown=False, onerror=_raise):
        for name in sorted((*folders, *files)):
            path = os.path.join(folder, name)
            yield os.path.relpath(path, top), os.lstat(path)


def _raise(error: OSError) -> None:
    raise error


def size_of(top: str) -> int:
    """Bytes on the disk."""
    try:
        return sum(found.st_blocks * 512 for _, found in walk(top))
    except FileNotFoundError:
        return 0


def flush(folder: str) -> None:
    """Write out what its filesystem still holds in memory: after a power cut a file that was renamed before may be empty."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(opened) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), folder)
    finally:
        os.close(opened)


def sum_of(path: str) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW)) as content:
        while block := content.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def seal(top: str, group: int, readable_by_all: bool) -> dict[str, str]:
    """Give a tree to root, to be read alone, and sum its files. FilesMistake for anything but files, folders and links."""
    sums = {}
    folder_mode, file_mode = (0o755, 0o644) if readable_by_all else (0o750, 0o640)
    for name, found in walk(top):
        path = os.path.join(top, name)
        if "\n" in name:
            raise FilesMistake(f"the name {name!a} has a line break")
        if stat.S_ISLNK(found.st_mode):
            os.chown(path, os.geteuid(), group, follow_symlinks=False)
            continue
        if not stat.S_ISDIR(found.st_mode) and not stat.S_ISREG(found.st_mode):
            raise FilesMistake(f"{name!a} is neither a file nor a folder")
        if stat.S_ISREG(found.st_mode):
            sums[name] = sum_of(path)
        os.chown(path, os.geteuid(), group)
        os.chmod(path, folder_mode if stat.S_ISDIR(found.st_mode) else file_mode)
    os.chown(top, os.geteuid(), group)
    os.chmod(top, folder_mode)
    return sums


def read_sums(path: str) -> dict[str, str]:
    """As sha256sum prints them."""
    found = {}
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as text:
        for line in filter(None, text.read().split("\n")):
            one = _LINE.fullmatch(line)
            if one is None:
                raise FilesMistake(f"{line[:80]!a} in {os.path.basename(path)} is not a line of sha256sum's")
            found[os.path.normpath(one[2])] = one[1]
    return found


def write_sums(path: str, sums: dict[str, str]) -> None:
    """Whole or not at all."""
    with open(f"{path}.new", "w", encoding="utf-8", errors="surrogateescape", newline="\n") as text:
        text.writelines(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
        text.flush()
        os.fsync(text.fileno())
    os.replace(f"{path}.new", path)


def compared(there: dict[str, str], wanted: dict[str, str], *, whole: bool) -> Iterator[str]:
    """What differs, a line each; `whole`: a file more is a difference too."""
    for name in sorted(wanted):
        if name not in there:
            yield f"{name!a} is missing"
        elif there[name] != wanted[name]:
            yield f"{name!a} has another checksum"
    for name in sorted(there.keys() - wanted.keys()) if whole else ():
        yield f"{name!a} is new"


def differences(top: str, manifest: str) -> Iterator[str]:
    """How a dataset differs from its checksums."""
    there = {
        name: sum_of(os.path.join(top, name)) for name, found in walk(top) if stat.S_ISREG(found.st_mode)
    }
    yield from compared(there, read_sums(manifest), whole=True)
