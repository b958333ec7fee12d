"""The action for an XID: from the catalogue's table, which is part of Expected, and from its text."""

from __future__ import annotations

from collections.abc import Sequence

from rackwright.health.kernel_records import LogEntry
from rackwright.health.verdict import Action

SOURCE = (
    "rackwright's catalogue, XID table: NVIDIA's catalogue with what others do (`rackwright catalog xid`)"
)

RECOVERY_CHANGED = 154
"""`GPU recovery action changed`: the text has the new action."""
CLEANUP = 45
"""A channel was torn down as a consequence of another error."""
NONFATAL = "Nonfatal"
"""The severity text of a non-fatal NVLink 5 event (144 to 150): the job may fail, the GPU keeps working.
NVIDIA's XID catalogue, "XID 144-150 Decode"; NVSentinel issue 1357."""
FATAL = "Fatal"
"""The GPU has to be reset; by the same sheet, a few subcodes need less."""
_RECOVERY = (
    ("reboot", Action.REBOOT),
    ("reset", Action.RESET_GPU),
    ("drain", Action.DRAIN),
    ("none", Action.NONE),
)


def recovery_action(words: str) -> Action | None:
    """The action for the driver's recovery text; None for any other text."""
    for word, action in _RECOVERY:
        if word in words.lower():
            return action
    return None


def action_of(entry: LogEntry, entries: Sequence[LogEntry], table: dict[int, Action]) -> Action | None:
    """The action for an XID, given the other XIDs in the log; None if unknown."""
    code = entry.code or 0
    if code == RECOVERY_CHANGED:
        return recovery_action(entry.recovery) if entry.recovery is not None else None
    if entry.severity == NONFATAL:
        return Action.NONE
    if code == CLEANUP and entry.cause is not None:
        own = any(one.code == entry.cause and one.device == entry.device for one in entries)
        return Action.NONE if own else table.get(entry.cause)
    action = table.get(code)
    if entry.severity == FATAL and action is not None:
        return max(action, Action.RESET_GPU, key=lambda one: one.rank)
    return action


def cleared_at(device: str | None, entries: Sequence[LogEntry]) -> float:
    """When the driver last reported that a GPU needs no recovery; 0 if never."""
    times = [
        one.at
        for one in entries
        if one.code == RECOVERY_CHANGED and one.device == device and one.recovery is not None
        if recovery_action(one.recovery) is Action.NONE
    ]
    return max(times, default=0.0)
