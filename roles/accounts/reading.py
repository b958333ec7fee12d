"""Reads what a node prints about its users: functions of text alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from rackwright.claims.check import Undetermined

OVERFLOW_UID = 65534
"""uid of the overflow user on every distribution (systemd's "Users, Groups, UIDs and GIDs", read 2026-11-26)."""


class Entry(NamedTuple):
    """A line of passwd."""

    name: str
    uid: int
    gid: int
    home: str
    shell: str


def parse_passwd(output: str) -> dict[str, Entry]:
    """`getent passwd`, by name; Undetermined where a line is something else."""
    found = {}
    for line in output.splitlines():
        fields = line.split(":")
        if len(fields) != 7 or not (fields[2].isdecimal() and fields[3].isdecimal()):
            raise Undetermined(f"`getent passwd` printed a line that cannot be read: {line[:80]!r}")
        found[fields[0]] = Entry(fields[0], int(fields[2]), int(fields[3]), fields[5], fields[6])
    return found


def members_of(output: str) -> tuple[str, ...]:
    """Members in a line of `getent group`; Undetermined where it is something else."""
    fields = output.strip().split(":")
    if len(fields) != 4:
        raise Undetermined(f"`getent group` printed a line that cannot be read: {output[:80]!r}")
    return tuple(name for name in fields[3].split(",") if name)


def local_in_range(local: Mapping[str, Entry], first: int, last: int) -> list[Entry]:
    """Users of the node's own with a number of the directory."""
    return [one for one in local.values() if first <= one.uid <= last and one.uid != OVERFLOW_UID]


def asks_sssd(text: str) -> bool:
    """Whether account rules of PAM ask SSSD."""
    return re.search(r"^-?account\s.*\bpam_sss\.so\b", text, re.MULTILINE) is not None


def makes_homes(text: str) -> bool:
    """Whether session rules of PAM make missing homes."""
    return re.search(r"^-?session\s.*\bpam_(oddjob_)?mkhomedir\.so\b", text, re.MULTILINE) is not None


def may_become_root(output: str) -> bool:
    """Whether `sudo -l -U user` shows that the user may run everything without a password."""
    return re.search(r"^\s+\((ALL|root)( : ALL)?\) NOPASSWD: ALL$", output, re.MULTILINE) is not None
