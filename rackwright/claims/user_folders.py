"""Claims about users' folders (rackwright.workload.user_folders)."""

from __future__ import annotations

from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered, at_path
from rackwright.model.options import RoleOptions
from rackwright.workload.user_folders import UserFolders


def only_their_users(context: CheckContext[RoleOptions], folders: UserFolders) -> str:
    """Root makes them, and each belongs to its user alone; what was moved aside is passed over."""
    declared = folders.files(context.node)
    as_rendered(
        context,
        {path: file[0] if file is not None else None for path, file in declared.items()},
        {path: file[1] for path, file in declared.items() if file is not None},
    )
    count = 0
    for parent in folders.parents:
        state = at_path(context, parent, digest_only=True)
        if (state.kind, state.mode, state.owner) != ("directory", "755", "root"):
            fail(f"{parent} is a {state.kind} with {state.mode} {state.owner}, not a directory with 755 root")
        listed = context.output("find %s -mindepth 1 -maxdepth 1 -printf %s", parent, "%U %m %y %f\\n")
        count += _count_of(listed, folders.prefix, parent)
    return f"{count} folders in {', '.join(folders.parents)}"


def _count_of(listed: str, prefix: str, parent: str) -> int:
    count = 0
    for line in listed.splitlines():
        fields = line.split(" ", 3)
        if len(fields) != 4:
            raise Undetermined(f"the folders in {parent} cannot be read: {line!r}")
        owner, mode, kind, name = fields
        uid = name.removeprefix(prefix)
        if not name.startswith(prefix) or not uid.isdigit():
            continue
        if (owner, mode, kind) != (uid, "700", "d"):
            fail(f"{parent}/{name} has mode {mode} and belongs to uid {owner}, not 700 and uid {uid}")
        count += 1
    return count
