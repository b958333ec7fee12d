"""Allowed disk contents, in the form that the check on the node compares.

The agent reads disks with wipefs; all installers have udev, which has probed each disk with the same library
(libblkid) before the check runs. So device names become partition numbers, and bytes that udev escapes become `_`.
"""

from __future__ import annotations

import re

from rackwright.install.installers.request import OsDisk

_KEPT = re.compile(rb"[^A-Za-z0-9._:+@#=-]")


def confirmed(disk: OsDisk) -> list[str]:
    """`NUMBER:TYPE:LABEL` of each approved signature, sorted; 0 is the disk itself. ValueError for another disk's."""
    return sorted({_line(disk, one) for one in disk.signatures})


def plain(text: str) -> str:
    """A label as the check sees it: one `_` for each byte that udev might escape."""
    return _KEPT.sub(b"_", text.encode()).decode()


def _line(disk: OsDisk, signature: str) -> str:
    device, _, rest = signature.partition(":")
    kind, _, label = rest.partition(":")
    number = re.fullmatch(r"p?([1-9][0-9]*)", device.removeprefix(disk.path))
    if not kind or not (device == disk.path or (device.startswith(disk.path) and number)):
        raise ValueError(f"{signature!r} is not a signature of {disk.path}")
    return f"{number[1] if number else 0}:{plain(kind)}:{plain(label)}"
