"""The states of an installation, and which may follow which."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where the installation of a node is."""

    DECLARED = "declared"
    """Nothing has been done."""
    PRECHECKED = "prechecked"
    """Its BMC is the declared machine's, which is off."""
    ARMED = "armed"
    """A token has been issued, and the machine was ordered to boot the agent."""
    DISCOVERED = "discovered"
    """The agent has shown the token."""
    INVENTORIED = "inventoried"
    """What the machine has is known."""
    HELD = "held"
    """It differs from the declaration, or a disk holds something: nothing is written without a confirmation."""
    APPROVED = "approved"
    HANDED_OVER = "handed-over"
    """The agent is done and is to power the machine off; the distribution's installer boots next."""
    INSTALLER = "installer"
    """The machine was ordered to boot the distribution's installer, which has not fetched its session yet."""
    INSTALLING = "installing"
    """The agent, or the distribution's installer, may write."""
    INSTALLED = "installed"
    """The disks are written, and the machine is to power itself off."""
    FIRST_BOOT = "first-boot"
    """It boots from its disk."""
    READY = "ready"
    """It answers ssh with the host key that it made, and boots what this run installed."""
    ERASING = "erasing"
    """All its disks are being erased, for good."""
    ERASED = "erased"
    """They are, and were read again; the machine is to power itself off."""
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
"""While agent or installer runs, or is about to: a machine that is off in one of these has lost its power."""
ORDERED_ON = (State.ARMED, State.INSTALLER)
"""The machine was ordered on, and what it boots has not called yet."""
WRITING = (State.INSTALLING, State.ERASING)
"""While agent or installer writes to disks."""
AGENT_DONE = (State.HANDED_OVER, State.INSTALLED, State.ERASED, State.SURVEYED)
"""What runs on the machine has nothing more to do but to power it off."""
UNDER_WAY = (*ON_THE_MACHINE, State.HANDED_OVER, State.INSTALLED, State.FIRST_BOOT)
"""What a later `rackwright install` goes on with."""


def may_follow(before: State, after: State) -> bool:
    """Whether an installation may go from one state to the other.

    A new run begins with `prechecked` whatever came before; anything that is under way may fail.
    """
    if after is State.PRECHECKED:
        return True
    if after is State.FAILED:
        return before in (*UNDER_WAY, State.PRECHECKED, State.DECLARED)
    return after in _NEXT[before]
