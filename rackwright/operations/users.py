"""Users and groups, with the same numbers on every node where the declaration gives numbers."""

from __future__ import annotations

from collections.abc import Generator
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.facts.users import UnixGroup, User, UserState
from rackwright.plan.changes import Change, record


@operation()
def group(group: str, gid: int | None = None, system: bool = False) -> Generator[StringCommand, None, None]:
    """A group; with `gid`, exactly that number."""
    there: int | None = host.get_fact(UnixGroup, group=group)
    if there is not None and gid in (None, there):
        host.noop(f"group {group} is as declared")
        return
    record(Change("group", group, None if there is None else f"gid {there}", f"gid {gid or 'next free'}"))
    if there is not None:
        yield StringCommand(f"groupmod --gid {gid} {quote(group)}")
        return
    flags = (["--system"] if system else []) + ([f"--gid {gid}"] if gid is not None else [])
    yield StringCommand(" ".join(["groupadd", *flags, quote(group)]))


@operation()
def user(
    user: str,
    uid: int | None = None,
    group: str | None = None,
    groups: tuple[str, ...] = (),
    shell: str = "/bin/bash",
    home: str | None = None,
    system: bool = False,
    create_home: bool = True,
) -> Generator[StringCommand, None, None]:
    """A user without a password; `groups` are added to its groups, none is removed.

    + uid: the number it must have; an existing user with another one is refused, since its files
      would keep the old number
    """
    there: UserState | None = host.get_fact(User, user=user)
    home_folder = home or f"/home/{user}"
    if there is None:
        after = f"uid {uid or 'next free'}, group {group or user}, groups {','.join(groups) or '-'}, {shell}"
        record(Change("user", user, None, after))
        flags = [
            "--system" if system else "",
            f"--uid {uid}" if uid is not None else "",
            f"--gid {quote(group)}" if group else "--user-group",
            f"--groups {quote(','.join(groups))}" if groups else "",
            f"--shell {quote(shell)} --home-dir {quote(home_folder)}",
            "--create-home" if create_home else "--no-create-home",
        ]
        yield StringCommand(" ".join(["useradd", *filter(None, flags), quote(user)]))
        return
    if uid is not None and there.uid != uid:
        raise OperationError(
            f"user {user} has uid {there.uid} on the node, but {uid} in the cluster file; "
            "its files would keep the old number, so change it by hand"
        )
    changes, flags = _differences(user, there, group, groups, shell, home_folder)
    if not flags:
        host.noop(f"user {user} is as declared")
        return
    record(*changes)
    yield StringCommand(" ".join(["usermod", *flags, quote(user)]))


def _differences(
    user: str, there: UserState, group: str | None, groups: tuple[str, ...], shell: str, home: str
) -> tuple[list[Change], list[str]]:
    changes: list[Change] = []
    flags: list[str] = []
    for flag, name, before, after in (
        ("--gid", "group", there.group, group or there.group),
        ("--shell", "shell", there.shell, shell),
        ("--home", "home", there.home, home),
    ):
        if before != after:
            flags.append(f"{flag} {quote(after)}")
            changes.append(Change("user", user, f"{name} {before}", f"{name} {after}"))
    if missing := sorted(set(groups) - there.groups):
        flags.append(f"--append --groups {quote(','.join(missing))}")
        changes.append(Change("user", user, None, f"member of {', '.join(missing)}"))
    return changes, flags
