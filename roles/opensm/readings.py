"""What the tools of a fabric print about its subnet managers, read into values: text in, nothing else."""

from __future__ import annotations

import re
from typing import NamedTuple

from rackwright.claims.check import Undetermined

_SMINFO = re.compile(
    r"sminfo: sm lid (\d+) sm guid (0x[0-9a-f]+), activity count \d+ priority (\d+) state (\d+) SMINFO_(\w+)"
)


class SmInfo(NamedTuple):
    """A subnet manager, as it describes itself."""

    lid: int
    guid: int
    priority: int
    state: str
    """`MASTER`, `STANDBY`, `DISCOVER` or `NOTACT`."""


def parse_sminfo(text: str) -> SmInfo:
    """What sminfo prints; Undetermined where it is not that."""
    found = _SMINFO.search(text)
    if found is None:
        raise Undetermined(f"sminfo did not describe a subnet manager: {text.strip()[:80]!r}")
    return SmInfo(int(found[1]), int(found[2], 16), int(found[3]), found[5])


def parse_gid(text: str) -> int:
    """The port GUID in /sys/class/infiniband/DEVICE/ports/N/gids/0."""
    groups = text.strip().split(":")
    if len(groups) != 8 or not all(re.fullmatch(r"[0-9a-f]{4}", group) for group in groups):
        raise Undetermined(f"not a GID: {text.strip()[:60]!r}")
    return int("".join(groups[4:]), 16)


def parse_lid(text: str) -> int:
    """/sys/class/infiniband/DEVICE/ports/N/lid, e.g. `0x5`."""
    word = text.strip()
    if not re.fullmatch(r"0x[0-9a-f]{1,4}", word):
        raise Undetermined(f"not a LID: {word[:40]!r}")
    return int(word, 16)
