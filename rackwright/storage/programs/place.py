"""Looks at a filesystem, makes the bench's folder on it, and removes it and what an interrupted bench left."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from typing import Any

from rackwright.storage.programs.children import become, in_child, say

FOLDER = re.compile(r"\.rackwright-bench-([0-9]{1,12})-([0-9a-f]{16})")
"""Until when (seconds since 1970) its run may use it, and the number of the run."""
_ESCAPED = re.compile(r"\\([0-7]{3})")


def mounted(text: str, path: str) -> list[str] | None:
    """Source and type of what is mounted on a path, of the text of /proc/self/mountinfo; None: nothing.

    An automount alone is nothing. Of several mounts the last one is on top.
    """
    found = None
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if dash and len(fields) > 4 and len(kind) > 1 and _plain(fields[4]) == path and kind[0] != "autofs":
            found = [_plain(kind[1]), kind[0]]
    return found


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


def _look(path: str) -> dict[str, Any]:
    os.stat(os.path.join(path, "."))  # mounts it where it is mounted by the first access
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        there = mounted(file.read(), path)
    space = os.statvfs(path)
    return {
        "mounted": there,
        "free_bytes": space.f_bavail * space.f_frsize,
        "size_bytes": space.f_blocks * space.f_frsize,
        "free_files": space.f_favail,
        "files": space.f_files,
    }


def _is_over(name: str, unfinished: list[str]) -> bool:
    match = FOLDER.fullmatch(name)
    return match is not None and (int(match[1]) < time.time() or match[2] in unfinished)


def _make(base: str, name: str, inner: list[str], unfinished: list[str]) -> dict[str, Any]:
    removed = []
    for left in sorted(os.listdir(base)):
        if _is_over(left, unfinished) and left != name:
            _remove(base, left)
            removed.append(left)
    os.mkdir(os.path.join(base, name), 0o700)
    for one in inner:
        os.mkdir(os.path.join(base, name, one), 0o700)
    return {"removed": removed}


def _remove(base: str, name: str) -> dict[str, Any]:
    if FOLDER.fullmatch(name) is None:
        raise ValueError(f"{name!r} is not a folder of the bench")
    folder = os.path.join(base, name)
    if os.path.lexists(folder):
        shutil.rmtree(folder)  # follows no link
    return {"removed": [name]}


def main(asked: dict[str, Any]) -> dict[str, Any]:
    """`look` at a mount point, `make` a folder in it, or `remove` one."""
    wrong = become(asked["user"])
    if wrong is not None:
        return {"error": wrong}
    base = os.path.normpath(os.path.join(asked["path"], asked["folder"]))
    work = {
        "look": lambda: _look(asked["path"]),
        "make": lambda: _make(base, asked["name"], asked["inner"], asked["unfinished"]),
        "remove": lambda: _remove(base, asked["name"]),
    }
    return in_child(work[asked["do"]], float(asked["seconds"]))


if __name__ == "__main__":
    say(main(json.loads(sys.argv[1])))
    sys.stdout.flush()
    os._exit(0)
