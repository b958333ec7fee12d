"""What an XID asks for: by the catalogue's table, which travels in Expected, and by its own words."""

from __future__ import annotations

import re

from rackwright.health.verdict import Action

SOURCE = (
    "rackwright's catalogue, XID table: NVIDIA's catalogue with what others do (`rackwright catalog xid`)"
)

RECOVERY_CHANGED = 154
"""GPU recovery action changed: the text says to what."""
_RECOVERY = (
    ("reboot", Action.REBOOT),
    ("reset", Action.RESET_GPU),
    ("drain", Action.DRAIN),
    ("none", Action.NONE),
)


def recovery_action(words: str) -> Action | None:
    """What the driver's own words for a recovery ask for; None when they say something else."""
    for word, action in _RECOVERY:
        if word in words.lower():
            return action
    return None


def action_of(code: int, message: str, table: dict[int, Action]) -> Action | None:
    """What an XID asks for; None when nobody knows."""
    if code == RECOVERY_CHANGED:
        changed = re.search(r"\bto 0x[0-9a-f]+ \(([^)]*)\)", message, re.IGNORECASE)
        return recovery_action(changed.group(1)) if changed else None
    return table.get(code)
