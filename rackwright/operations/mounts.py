"""Declared filesystems: mounted by systemd, and remounted if the mount differs from the declaration."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.facts.mounts import MountTable
from rackwright.facts.settings import Answer
from rackwright.facts.units import Unit, UnitState
from rackwright.facts.users import User, UserState
from rackwright.model.mount_names import unit_name
from rackwright.model.storage import Mount
from rackwright.mounts import (
    MountEntry,
    automount_text,
    automount_unit,
    differences,
    live,
    mount_text,
    mount_unit,
    sharing,
    unit_texts,
)
from rackwright.operations import files, units
from rackwright.plan.changes import Change, record

_SAME_SECONDS = 10
_SAME = """\
look() {{ LC_ALL=C timeout -s KILL {seconds} stat -c %d:%i "$1" || [ $? -ne 137 ]; }}
at=$(look {path}) && of=$(look {folder}) || exit 0
if [ -n "$of" ] && [ "$at" = "$of" ]; then echo same; else echo other; fi"""
"""Prints nothing where a filesystem does not answer. A folder that is missing is not the same."""


def declared(mounts: Sequence[Mount]) -> None:
    """Unit files of every mount, then each is mounted; call it from a role's deploy."""
    for mount in host.loop(mounts):  # type: ignore[no-untyped-call]
        path = mount.filesystem.path
        unit, automount = unit_texts(mount)
        at_first_use = automount_text(mount)
        files.file(name=f"Write the mount unit of {path}", path=unit, content=mount_text(mount))
        if at_first_use is not None:
            files.file(name=f"Write the automount unit of {path}", path=automount, content=at_first_use)
    # any of them may have to make way for another: the files of all are there before
    for mount in host.loop(mounts):  # type: ignore[no-untyped-call]
        path = mount.filesystem.path
        _, automount = unit_texts(mount)
        mounted(name=f"Mount {path}", mount=mount, together=tuple(mounts))
        if automount_text(mount) is None:
            files.absent(name=f"Remove the automount unit of {path}", path=automount)


@operation()
def mounted(mount: Mount, together: tuple[Mount, ...] = ()) -> Generator[StringCommand, None, None]:
    """A filesystem is mounted at boot or at its first use, and what is mounted is what is declared.

    With `automount` nothing is mounted here: a server that is away does not end the run. What is mounted and differs
    is mounted anew, which drains a worker first.

    + together: mounts that may share its connections, which end only when all of them are unmounted
    """
    fs, unit, automount = mount.filesystem, mount_unit(mount), automount_unit(mount)
    first, other = (automount, unit) if fs.automount else (unit, automount)
    there: UnitState = host.get_fact(Unit, unit=first)
    stale: UnitState = host.get_fact(Unit, unit=other)
    table: dict[str, tuple[MountEntry, ...]] = host.get_fact(
        MountTable, paths=tuple(sorted({fs.path, *(one.filesystem.path for one in together)}))
    )
    shared = sharing(mount, together, table)
    entry = live(table.get(fs.path, ()))
    if fs.path not in table:
        keep_own_login(fs.path)
    commands: list[str] = []
    if stale.file_state.startswith("enabled"):
        record(Change("unit", other, stale.file_state, "disabled"))
        commands.append(f"systemctl disable --quiet {quote(other)}")
    if there.masked:
        record(Change("unit", first, "masked", "unmasked"))
        commands.append(f"systemctl unmask --quiet {quote(first)}")
    if not there.enabled:
        record(Change("unit", first, there.file_state or "missing", "enabled"))
        commands.append(f"systemctl enable --quiet {quote(first)}")
    anew = _anew(mount, entry, there, stale, shared)
    if anew is not None:
        record(Change("unit", unit, "running", "mounted anew", because=anew, disruptive=True))
        # an automount unit takes what is mounted over it along when it stops, and refuses to start under a mount
        waits = stale.active and not fs.automount
        stops = (other if waits else unit, *map(mount_unit, shared))
        commands.append(f"systemctl stop {' '.join(map(quote, stops))}")
    if not there.active:
        record(Change("unit", first, there.active_state, "running"))
    if not there.active or anew is not None:
        commands.append(_started(first))
    if not commands and (there.needs_daemon_reload or stale.needs_daemon_reload):
        record(Change("unit", unit, "unit file changed on disk", "unit file read again"))
        commands.append(":")
    if not commands:
        host.noop(f"{fs.path} is as declared")
        return
    yield StringCommand(f"sh -ec {quote(chr(10).join(('systemctl daemon-reload', *commands)))}")


@operation()
def bound(folder: str, path: str) -> Generator[StringCommand, None, None]:
    """A folder of the node is at a second path too, by that path's mount unit; what else is mounted there makes way."""
    table: dict[str, tuple[MountEntry, ...]] = host.get_fact(MountTable, paths=(path,))
    other = live(table.get(path, ())) is not None and not _is_same(folder, path)
    if other or path not in table:
        keep_own_login(path)
    because = f"{path} is not {folder}" if other else None
    yield from units.unit._inner(unit=unit_name(path), because=because)


def _is_same(folder: str, path: str) -> bool:
    """Whether a folder is what is seen at a path. A mount unit stays active when What= changes: only the kernel knows."""
    said: str | None = host.get_fact(
        Answer, read=_SAME.format(folder=quote(folder), path=quote(path), seconds=_SAME_SECONDS)
    )
    if said not in ("same", "other"):
        raise OperationError(
            f"{path} does not answer within {_SAME_SECONDS} s: whether it is {folder} is unknown"
        )
    return said == "same"


def keep_own_login(path: str) -> None:
    """Refuses to hide the home, and so the keys, of the login by which this run came: it would be the last one."""
    login = site_of().cluster.ssh.user
    account: UserState | None = host.get_fact(User, user=login)
    if account is not None and (account.home == path or account.home.startswith(f"{path}/")):
        raise OperationError(
            f"{path} would hide {account.home}, the home of {login}, with which rackwright logs in; give {login} a home "
            f"on the node's own disk, e.g. `usermod --move-home --home /var/lib/{login} {login}` as another user"
        )


def _anew(
    mount: Mount, entry: MountEntry | None, there: UnitState, stale: UnitState, shared: tuple[Mount, ...]
) -> str | None:
    """Why what is mounted has to be unmounted; None: it has not, or nothing is mounted."""
    path, by_use = mount.filesystem.path, mount.filesystem.automount
    wrong = tuple(differences(mount, entry)) if entry is not None else ()
    if wrong:
        return f"{path} {'; '.join(wrong)}"
    if shared:
        return f"{path} shares the connections of {', '.join(one.filesystem.path for one in shared)}"
    if not by_use and stale.active:
        return f"{path} is mounted on first use, but is declared to be mounted at boot"
    if by_use and entry is not None and not there.active:
        return f"{path} is already mounted, and its automount unit is missing"
    return None


def _started(unit: str) -> str:
    """Starting it, with the unit's own last words where that fails."""
    name = quote(unit)
    return (
        f"systemctl reset-failed {name} 2>/dev/null || :\n"
        f"systemctl start {name} || {{ systemctl status --no-pager --full --lines=15 {name} >&2; exit 1; }}"
    )
