"""Mounts as the kernel shows them to a process: /proc/PID/mountinfo (proc_pid_mountinfo(5)). Python 3.9, standard library."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

_ESCAPED = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """A mount in the namespace of a process."""

    id: int
    device: str
    """Of its filesystem: major:minor."""
    root: str
    """The folder of that filesystem which it shows; `/` is all of it."""
    point: str
    """Where it is, below the root folder of the process."""
    kind: str
    """Type of the filesystem."""


def mounts(process: str = "/proc/self") -> list[Mount]:
    """Those that a process sees."""
    found = []
    with open(f"{process}/mountinfo", "rb") as text:
        for line in text.read().splitlines():
            fields = line.split()
            kind = fields[fields.index(b"-", 6) + 1]
            number, _, device, root, point = fields[:5]
            found.append(Mount(int(number), device.decode(), _path(root), _path(point), kind.decode()))
    return found


def _path(text: bytes) -> str:
    """Spaces, tabs, line breaks and backslashes are octal numbers there."""
    return os.fsdecode(_ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), text))
