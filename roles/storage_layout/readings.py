"""What sysfs reports of an array, judged. Linux, Documentation/admin-guide/md.rst: array_state, dev-*/state, sync_action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

RUNNING = frozenset({"clean", "active", "active-idle", "write-pending"})
AT_WORK = {"recover": "rebuilding", "resync": "resyncing", "reshape": "reshaping"}


class ArrayState(Protocol):
    """The part of a fact's array that is judged."""

    @property
    def members(self) -> Mapping[str, str]: ...
    def value(self, key: str) -> str: ...


def array_faults(
    found: ArrayState, level: str, disks: int, declared: Mapping[str, str]
) -> tuple[list[str], str | None]:
    """What is wrong with an array, and what it is doing about it, with its progress; None: nothing.

    `declared`: name of each member's device -> what it is declared as. A failed array is doing nothing about it.
    """
    state, faults = found.value("array_state"), []
    if state not in RUNNING:
        return [f"it is {state or 'in an unknown state'}"], None
    if found.value("level") != level:
        faults.append(f"it is {found.value('level')}, not {level}")
    if found.value("raid_disks") != str(disks):
        faults.append(
            f"it is made for {found.value('raid_disks') or 'an unknown number of'} disks, not {disks}"
        )
    faults += [f"{name} has failed" for name, how in found.members.items() if "faulty" in how]
    degraded = found.value("degraded")
    doing = AT_WORK.get(found.value("sync_action"))
    leaving = doing is not None and any("replacement" in how for how in found.members.values())
    if not leaving:  # a member that is not declared serves until its data is copied
        faults += [f"{name} is a member but not declared" for name in found.members if name not in declared]
    faults += [f"{what} is not a member" for name, what in declared.items() if name not in found.members]
    if degraded not in ("", "0") and doing is None:  # while it is rebuilt, it is
        faults.append(f"it is degraded by {degraded}")
    elif not degraded and level != "raid0":
        faults.append("whether it is degraded cannot be read")
    return faults, f"{doing}, {progress(found.value('sync_completed'))}" if doing else None


def progress(completed: str) -> str:
    """`1024 / 4096` sectors as a share."""
    done, _, whole = completed.partition(" / ")
    if done.isdecimal() and whole.isdecimal() and int(whole):
        return f"{100 * int(done) // int(whole)} % done"
    return "its progress is not known yet"
