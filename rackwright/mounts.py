"""Declared filesystems on a node: their mount units, and how what is mounted differs from the declaration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rackwright.model.cluster import Node
from rackwright.model.mount_names import unit_name
from rackwright.model.storage import Filesystem, FilesystemKind, Mount, MountsFilesystems
from rackwright.render import render

UNITS = "/etc/systemd/system"
AUTOFS = "autofs"
_NETWORK_TYPES = frozenset({"nfs", "nfs4", "ceph", "lustre"})
"""Our filesystem types that systemd orders as network filesystems (fstype_is_network, src/basic/mountpoint-util.c of 252)."""
_OCTAL = re.compile(r"\\([0-7]{3})")


class UnreadableMounts(ValueError):  # noqa: N818 - what was printed is not mountinfo
    """A text that is not /proc/self/mountinfo."""


@dataclass(frozen=True)
class MountEntry:
    """One line of /proc/self/mountinfo."""

    target: str
    source: str
    type: str
    options: frozenset[str]
    """Of the mount and of the filesystem."""


def parse_mountinfo(text: str) -> dict[str, tuple[MountEntry, ...]]:
    """Entries by target, oldest first (proc_pid_mountinfo(5)). Raises UnreadableMounts."""
    found: dict[str, tuple[MountEntry, ...]] = {}
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if not dash or len(fields) < 6 or len(rest) < 3:
            raise UnreadableMounts(f"mountinfo has a line {line[:80]!r}")
        entry = MountEntry(
            target=_plain(fields[4]),
            source=_plain(rest[1]),
            type=rest[0],
            options=frozenset((*fields[5].split(","), *_plain(rest[2]).split(","))),
        )
        found[entry.target] = (*found.get(entry.target, ()), entry)
    if "/" not in found:
        raise UnreadableMounts("mountinfo has no line for /")
    return found


def _plain(word: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), word)


def live(entries: tuple[MountEntry, ...]) -> MountEntry | None:
    """What is seen at a path: the newest mount; None where there is none but the automounter's own."""
    return next((entry for entry in reversed(entries) if entry.type != AUTOFS), None)


def differences(mount: Mount, entry: MountEntry) -> Iterator[str]:
    """How what is mounted differs from the declaration, one phrase each."""
    types = mount.types or (mount.type,)
    if entry.type not in types:
        yield f"is {entry.type}, not {' or '.join(types)}"
    sources = mount.sources or (mount.what,)
    if entry.source not in sources:
        yield f"comes from {entry.source}, not from {' or '.join(sources)}"
    there = {name: value for name, _, value in (option.partition("=") for option in entry.options)}
    for name, value in sorted(mount.shown.items()):
        wanted = name if value is None else f"{name}={value}"
        if name not in there:
            yield f"lacks {wanted}"
        elif value is not None and there[name] != value:
            yield f"has {name}={there[name]}, not {wanted}"
    if mount.filesystem.read_only != ("ro" in there):
        yield "is writable, not read-only" if mount.filesystem.read_only else "is read-only"


def sharing(
    mount: Mount, mounts: Sequence[Mount], table: Mapping[str, tuple[MountEntry, ...]]
) -> tuple[Mount, ...]:
    """The other mounts that keep wrong connections to its server alive: none gets better ones while any of them is there."""
    entries = {one.filesystem.path: live(table.get(one.filesystem.path, ())) for one in (mount, *mounts)}
    own = entries[mount.filesystem.path]
    if own is None:
        return ()
    together = [
        one
        for one in (mount, *mounts)
        if (entry := entries[one.filesystem.path]) is not None
        and _connection(mount, entry) == _connection(mount, own)
    ]
    if not any(_is_wrong(one, entries[one.filesystem.path]) for one in together):
        return ()
    return tuple(one for one in together if one.filesystem.path != mount.filesystem.path)


def _connection(mount: Mount, entry: MountEntry) -> tuple[str, frozenset[str]]:
    """What entries of one connection have in common."""
    names = {"vers", "proto", *mount.first_decides}
    options = frozenset(one for one in entry.options if one.partition("=")[0] in names)
    return entry.source.partition(":")[0], options


def _is_wrong(mount: Mount, entry: MountEntry | None) -> bool:
    """Whether its connections are not as declared."""
    there = {} if entry is None else dict(one.partition("=")[::2] for one in entry.options)
    return entry is not None and any(
        there.get(name) != value for name, value in mount.shown.items() if name in mount.first_decides
    )


def mounts_of(node: Node, role: MountsFilesystems) -> tuple[Mount, ...]:
    """What a role mounts on a node, in file order."""
    return tuple(role.mount_of(node, one) for one in mounted_by(node, role.mounts_kinds))


def mounted_by(node: Node, kinds: frozenset[FilesystemKind]) -> tuple[Filesystem, ...]:
    """The filesystems of these kinds that a node mounts from elsewhere."""
    return tuple(one for one in node.filesystems if one.kind in kinds and node.name not in one.server_nodes)


def mount_unit(mount: Mount) -> str:
    """Name of the mount unit."""
    return unit_name(mount.filesystem.path)


def automount_unit(mount: Mount) -> str:
    """Name of the automount unit."""
    return f"{mount_unit(mount).removesuffix('.mount')}.automount"


def mount_text(mount: Mount) -> str:
    """Content of the mount unit."""
    fs = mount.filesystem
    options = ",".join((*mount.options, *(("ro",) if fs.read_only else ())))
    known = mount.type in _NETWORK_TYPES
    return render(
        "mounts/mount.j2", fs=fs, mount=mount, options=options or "defaults", known_as_network=known
    )


def automount_text(mount: Mount) -> str | None:
    """Content of the automount unit; None: it has none."""
    return render("mounts/automount.j2", fs=mount.filesystem) if mount.filesystem.automount else None


def unit_texts(mount: Mount) -> dict[str, str | None]:
    """Path to content of its unit files; None: the file does not exist."""
    return {
        f"{UNITS}/{mount_unit(mount)}": mount_text(mount),
        f"{UNITS}/{automount_unit(mount)}": automount_text(mount),
    }


def unit_files(node: Node, role: MountsFilesystems) -> tuple[str, ...]:
    """Paths of every unit file that a role's mounts have on a node, or had with another `automount`."""
    return tuple(path for mount in mounts_of(node, role) for path in unit_texts(mount))
