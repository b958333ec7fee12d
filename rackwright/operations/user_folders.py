"""Each user's folders in places owned by root (rackwright.workload.user_folders)."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote

from pyinfra.context import host

from rackwright.model.cluster import Node
from rackwright.model.interfaces import DeclaresUsers
from rackwright.operations import files, settings
from rackwright.workload.user_folders import UserFolders


def user_folders(node: Node, folders: UserFolders) -> None:
    """What makes them, and those of declared users; others get theirs before their first job or login."""
    for parent in host.loop(folders.parents):  # type: ignore[no-untyped-call]
        files.directory(name=f"Let root alone write {parent}", path=parent)
    wanted = folders.files(node)
    used = sorted({path.rpartition("/")[0] for path, file in wanted.items() if file is not None})
    for folder in host.loop(used):  # type: ignore[no-untyped-call]
        files.directory(name=f"Make {folder}", path=folder)
    for path, declared in host.loop(wanted.items()):  # type: ignore[no-untyped-call]
        if declared is None:
            files.absent(name=f"Remove {path}", path=path)
        else:
            files.file(name=f"Write {path}", path=path, content=declared[0], mode=declared[1])
    if uids := _declared_uids(node):
        settings.setting(
            name="Make the folders of declared users",
            target=f"folders of declared users ({folders.role})",
            read=_missing(folders, uids),
            want="none is missing",
            write=f"for uid in {' '.join(uids)}; do {folders.program} $uid || exit; done",
        )


def no_user_folders(node: Node, folders: UserFolders) -> None:
    """Nothing makes folders of users here; those that are there stay."""
    for path in host.loop(folders.paths(node)):  # type: ignore[no-untyped-call]
        files.absent(name=f"Remove {path}", path=path)


def _declared_uids(node: Node) -> tuple[str, ...]:
    declared = node.offers(DeclaresUsers)
    return tuple(sorted(str(account.uid) for account in declared.accounts)) if declared is not None else ()


def _missing(folders: UserFolders, uids: Iterable[str]) -> str:
    """Shell: names the folders that are not their user's alone."""
    wanted = [
        f"{parent}/{folders.prefix}{uid} {uid} 700 directory" for parent in folders.parents for uid in uids
    ]
    paths = " ".join(quote(line.split()[0]) for line in wanted)
    found = f"stat -c '%n %u %a %F' {paths} 2>/dev/null"
    lines = " ".join(map(quote, wanted))
    return (
        f"printf '%s\\n' {lines} | grep -vxF \"$({found})\" | cut -d' ' -f1 | grep . || echo none is missing"
    )
