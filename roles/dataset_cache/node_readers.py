"""Which process uses a dataset, also one in a container. Runs on the node: standard library, Python 3.9.

A container (pyxis, apptainer, docker) has its own mounts: its processes show a dataset as /data, not where the node has it.
/proc/PID/mountinfo shows which folder of which filesystem that is.
"""

from __future__ import annotations

import os
from contextlib import suppress

from rackwright.node_folders.mounted import Unsafe, mount_id, opened
from rackwright.node_folders.mounts import Mount, mounts


def reader_of(path: str, proc: str = "/proc") -> int | None:
    """A process that has a file below a folder open, is in it, has one mapped, or has a mount of it or of a folder in it."""
    try:
        where = _place(path)
    except (FileNotFoundError, NotADirectoryError):
        return None  # it is gone, or not a dataset
    seen: dict[tuple[str, str], list[str] | None] = {}
    for name in os.listdir(proc):
        if name.isdigit():
            with suppress(OSError):  # it has ended, or is about to
                process = f"{proc}/{name}"
                key = os.readlink(f"{process}/ns/mnt"), os.readlink(f"{process}/root")
                if key not in seen:
                    seen[key] = _seen_at(where, process, key[1])
                there = seen[key]
                if there is None or _uses(process, {path, *there}):
                    return int(name)
    return None


def _place(path: str) -> Mount:
    """The folder as a mount would show it: its filesystem, and its path in that."""
    with opened(path) as folder:
        number, point = mount_id(folder), os.readlink(f"/proc/self/fd/{folder}")
    one = next((mount for mount in mounts() if mount.id == number), None)
    if one is None:
        raise Unsafe(f"the kernel does not show the mount of {path}")
    inner = os.path.normpath(os.path.join(one.root, os.path.relpath(point, one.point)))
    return Mount(number, one.device, inner, point, one.kind)


def _seen_at(where: Mount, process: str, root: str) -> list[str] | None:
    """Paths at which the processes of a mount namespace have the folder; None: it is mounted there, all of it or a part."""
    found = []
    for one in mounts(process):
        if one.device != where.device:
            continue
        if _is_below(one.root, where.root):
            return None
        if _is_below(where.root, one.root):
            inner = os.path.relpath(where.root, one.root)
            found.append(os.path.normpath(f"{root}/{one.point}/{inner}"))
    return found


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top.rstrip('/')}/")


def _uses(process: str, paths: set[str]) -> bool:
    links = [
        f"{process}/cwd",
        f"{process}/root",
        *(f"{process}/fd/{one}" for one in os.listdir(f"{process}/fd")),
    ]
    if any(_leads_below(link, paths) for link in links):
        return True
    with open(f"{process}/maps", "rb") as text:
        content = text.read()
    return any(os.fsencode(f"{path}/") in content for path in paths)


def _leads_below(link: str, paths: set[str]) -> bool:
    with suppress(OSError):
        target = os.readlink(link)
        return any(_is_below(target, path) for path in paths)
    return False
