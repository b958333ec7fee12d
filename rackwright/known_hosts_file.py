"""Changes to a known_hosts file: one host's keys in place of its older ones, every other line as it was."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from rackwright.atomic_write import write_atomically


def change_known_hosts(path: Path, change: Callable[[str], str]) -> None:
    """Read a known_hosts file, change its text and replace it; its folder must exist.

    Locked, since racks may share a file and installations end at the same time. The file keeps its owner; a new one
    gets that of its folder.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(
            folder, fcntl.LOCK_EX
        )  # of the folder: a lock file would lie about beside the user's keys
        old = path.read_text() if path.exists() else ""
        new = change(old)
        if new == old:
            return
        owner = (path if path.exists() else path.parent).stat()
        write_atomically(path, new, mode=0o644)
        if os.geteuid() == 0:
            os.chown(path, owner.st_uid, owner.st_gid)
    finally:
        os.close(folder)


def with_keys(text: str, keys: Mapping[str, Sequence[str]]) -> str:
    """known_hosts with these keys (public key -> its host patterns) and without older ones of the same hosts.

    The same text where it has them already, so that repeated calls for a node write the file once.
    """
    ours = {pattern for patterns in keys.values() for pattern in patterns}
    added = [f"{','.join(patterns)} {' '.join(key.split()[:2])}\n" for key, patterns in keys.items()]
    new = without_hosts(text, ours) + "".join(added)
    return text if sorted(new.splitlines()) == sorted(text.splitlines()) else new


def without_hosts(text: str, patterns: Collection[str]) -> str:
    """known_hosts without the keys of these hosts."""
    lines = [kept for line in text.splitlines() if (kept := _without(line, patterns)) is not None]
    return "".join(f"{line}\n" for line in lines)


def _without(line: str, patterns: Collection[str]) -> str | None:
    hosts, _, rest = line.partition(" ")
    # comments, @markers and hashed names are not ours to change
    if not rest or hosts.startswith(("#", "@", "|")):
        return line
    kept = [host for host in hosts.split(",") if host not in patterns]
    return f"{','.join(kept)} {rest}" if kept else None
