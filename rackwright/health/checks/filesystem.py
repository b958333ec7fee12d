"""Filesystems: mounted, answering, writable, with room."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rackwright.health.document import Document
from rackwright.health.expected import Expected, ExpectedMount
from rackwright.health.node_records import Mount
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import Action, Finding, fail, good, unknown, warn

FULL_BY_NATURE = ("iso9660", "squashfs", "erofs", "cramfs")
NETWORK = re.compile(
    r"nfs4?|cifs|smb3|lustre|gpfs|ceph|9p|afs|wekafs|beegfs\w*|pvfs2|orangefs|glusterfs|fuse(\..*)?"
)
"""Network filesystem types: full on one node means full on every node."""
AUTOMOUNT = "autofs"
"""Mounted at first use."""
OWN = re.compile(r"/(|tmp|var(/.*)?)")
"""Where the node itself writes; other filesystems are filled and cleared by users."""


def by_target(document: Document) -> dict[str, Mount]:
    return {mount.target: mount for mount in document.mounts.mounts}


def mounted(expected: Expected, document: Document) -> list[tuple[ExpectedMount, Mount]]:
    """The declared mounts that are present; a separate check reports missing ones."""
    there = by_target(document)
    found = [(wanted, there[wanted.target]) for wanted in expected.mounts if wanted.target in there]
    if not found:
        raise Unreadable("no declared filesystem is mounted")
    return found


@check(
    "filesystem", "Every declared filesystem is mounted", reads=("mounts",), remedy="Check systemctl status of the mount unit, then the server.",
    source="the site's options; NHC check_fs_mount; gcm storage mounts",
)  # fmt: skip
def fs_mounted(expected: Expected, document: Document) -> Iterator[Finding]:
    there = by_target(document)
    for wanted in expected.mounts:
        if wanted.target not in there:
            of_server = wanted.shared and not wanted.automount
            yield fail(f"{wanted.target} is not mounted", Action.NONE if of_server else None)
    yield good(f"{len(expected.mounts)} filesystems")


@check(
    "filesystem", "Every declared filesystem has its declared source", reads=("mounts",), action=Action.NONE, remedy="Correct /etc/fstab, remount.",
    source="the site's options",
)  # fmt: skip
def fs_source(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(pair: tuple[ExpectedMount, Mount]) -> Finding | None:
        wanted, mount = pair
        if mount.type == AUTOMOUNT:
            return None
        if wanted.source is not None and mount.source != wanted.source:
            return fail(f"{mount.target} is mounted from {mount.source}, declared {wanted.source}")
        if wanted.type is not None and mount.type != wanted.type:
            return fail(f"{mount.target} is {mount.type}, declared {wanted.type}")
        return None

    yield from each(mounted(expected, document), judge, "as declared")


@check(
    "filesystem", "Every declared filesystem answers", reads=("mounts",), limits=("fs_seconds_warn",), action=Action.DRAIN,
    remedy="Check the server first. Then umount -l and remount.", source="ClusterMAX storage; NHC lbnl_fs",
)  # fmt: skip
def fs_answers(expected: Expected, document: Document) -> Iterator[Finding]:
    slow = expected.limit("fs_seconds_warn")

    def judge(pair: tuple[ExpectedMount, Mount]) -> Finding | None:
        wanted, mount = pair
        if mount.why is not None:
            evidence = f"{mount.target} ({mount.type}): {mount.why}"
            if "no answer" not in mount.why and "tale" not in mount.why:
                return unknown(evidence)
            return fail(
                evidence, Action.NONE if wanted.shared else None
            )  # else a server's reboot drains a rack
        if mount.seconds is None:
            raise Unreadable(f"the probe did not query {mount.target}")
        return warn(f"{mount.target} took {mount.seconds:.2f} s") if mount.seconds > slow else None

    yield from each(mounted(expected, document), judge, "all of them")


@check(
    "filesystem", "No declared filesystem has gone read-only", reads=("mounts",), action=Action.REBOOT,
    remedy="The kernel found damage: read its log and run fsck at the next boot.", source="NHC check_fs_mount_rw; ClusterMAX storage",
)  # fmt: skip
def fs_writable(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(pair: tuple[ExpectedMount, Mount]) -> Finding | None:
        wanted, mount = pair
        if not (wanted.writable and mount.read_only):
            return None
        is_remote = NETWORK.fullmatch(mount.type)  # the server exports it read-only to every node
        return fail(f"{mount.target} is read-only", Action.NONE if is_remote else None)

    yield from each(mounted(expected, document), judge, "writable")


def answering(expected: Expected, document: Document) -> list[Mount]:
    """Declared filesystems that reported their usage; `fs-answers` judges the others."""
    there = [mount for _, mount in mounted(expected, document)]
    found = [mount for mount in there if mount.why is None and mount.type not in FULL_BY_NATURE]
    if not found:
        raise Unreadable("no declared filesystem reported its usage")
    return found


def full(mount: Mount, evidence: str) -> Finding:
    """FAIL if the node itself cannot write; a full server is not the node's fault."""
    is_own = OWN.fullmatch(mount.target) and not NETWORK.fullmatch(mount.type)
    return fail(evidence) if is_own else warn(evidence)


@check(
    "filesystem", "Every declared filesystem has free space", reads=("mounts",), limits=("fs_used_warn_percent", "fs_used_fail_percent"),
    remedy="Find what fills it (`du -x`): old logs, core dumps, container images.",
    source="Verda: / below 90 %; imbue: 95 %; soperator: 80 % of the boot disk",
)  # fmt: skip
def fs_space(expected: Expected, document: Document) -> Iterator[Finding]:
    most, much = expected.limit("fs_used_fail_percent"), expected.limit("fs_used_warn_percent")

    def judge(mount: Mount) -> Finding | None:
        evidence = f"{mount.target} is {mount.used_percent:.0f} % full"
        if mount.used_percent >= most:
            return full(mount, evidence)
        return warn(evidence) if mount.used_percent >= much else None

    yield from each(answering(expected, document), judge, "enough")


@check(
    "filesystem", "Every declared filesystem has free inodes", reads=("mounts",), limits=("inodes_used_percent",),
    remedy="Find the directory with many small files.", source="NHC check_fs_inodes",
)  # fmt: skip
def fs_inodes(expected: Expected, document: Document) -> Iterator[Finding]:
    most = expected.limit("inodes_used_percent")

    def judge(mount: Mount) -> Finding | None:
        used = mount.inodes_percent
        return full(mount, f"{mount.target}: {used:.0f} % of the inodes used") if used >= most else None

    yield from each(answering(expected, document), judge, "enough")
