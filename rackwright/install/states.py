"""The states of an installation, and the transitions between them."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where the installation of a node is."""

    DECLARED = "declared"
    """Nothing has been done."""
    PRECHECKED = "prechecked"
    """Its BMC belongs to the declared machine, which is off."""
    ARMED = "armed"
    """A token has been issued, and the machine was ordered to boot the agent."""
    DISCOVERED = "discovered"
    """The agent has presented the token."""
    INVENTORIED = "inventoried"
    """The machine's inventory is known."""
    HELD = "held"
    """It differs from the declaration, or a disk has contents: nothing is written without a confirmation."""
    APPROVED = "approved"
    HANDED_OVER = "handed-over"
    """The agent is done and powers the machine off; the distribution's installer boots next."""
    INSTALLER = "installer"
    """The machine was ordered to boot the distribution's installer, which has not downloaded its session yet."""
    INSTALLING = "installing"
    """The agent, or the distribution's installer, may write."""
    INSTALLED = "installed"
    """The disks are written, and the machine powers itself off."""
    FIRST_BOOT = "first-boot"
    """It boots from its disk."""
    READY = "ready"
    """It answers SSH with its new host key, and boots what this run installed."""
    ERASING = "erasing"
    """All its disks are being erased permanently."""
    ERASED = "erased"
    """The disks are erased and verified; the machine powers itself off."""
    SURVEYED = "surveyed"
    """Discovered and powered off again; nothing was written."""
    FAILED = "failed"


_NEXT: dict[State, frozenset[State]] = {
    State.DECLARED: frozenset({State.PRECHECKED}),
    State.PRECHECKED: frozenset({State.ARMED}),
    State.ARMED: frozenset({State.DISCOVERED}),
    State.DISCOVERED: frozenset({State.INVENTORIED}),
    State.INVENTORIED: frozenset({State.INVENTORIED, State.HELD, State.APPROVED, State.SURVEYED}),
    State.HELD: frozenset({State.INVENTORIED}),
    State.APPROVED: frozenset({State.HANDED_OVER, State.INSTALLING, State.ERASING, State.INVENTORIED}),
    State.HANDED_OVER: frozenset({State.INSTALLER}),
    State.INSTALLER: frozenset({State.INSTALLING}),
    State.INSTALLING: frozenset({State.INSTALLED, State.INVENTORIED}),
    State.INSTALLED: frozenset({State.FIRST_BOOT}),
    State.FIRST_BOOT: frozenset({State.READY}),
    State.READY: frozenset(),
    State.ERASING: frozenset({State.ERASED, State.INVENTORIED}),
    State.ERASED: frozenset(),
    State.SURVEYED: frozenset(),
    State.FAILED: frozenset(),
}
ON_THE_MACHINE = (
    State.ARMED,
    State.DISCOVERED,
    State.INVENTORIED,
    State.HELD,
    State.APPROVED,
    State.INSTALLER,
    State.INSTALLING,
    State.ERASING,
)
"""The agent or installer runs, or is about to: a machine that is off in one of these states has lost power."""
ORDERED_ON = (State.ARMED, State.INSTALLER)
"""The machine was powered on, but what it boots has not called yet."""
WRITING = (State.INSTALLING, State.ERASING)
"""The agent or installer writes to disks."""
AGENT_DONE = (State.HANDED_OVER, State.INSTALLED, State.ERASED, State.SURVEYED)
"""What runs on the machine has only to power it off."""
UNDER_WAY = (*ON_THE_MACHINE, State.HANDED_OVER, State.INSTALLED, State.FIRST_BOOT)
"""States that a later `rackwright install` resumes."""


def may_follow(before: State, after: State) -> bool:
    """Whether an installation may go from one state to the other.

    A new run starts with `prechecked` from any state; anything in progress may fail.
    """
    if after is State.PRECHECKED:
        return True
    if after is State.FAILED:
        return before in (*UNDER_WAY, State.PRECHECKED, State.DECLARED)
    return after in _NEXT[before]
