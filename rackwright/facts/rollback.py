"""Changes that a node undoes by itself unless they are confirmed (rackwright.operations.guarded): what is armed."""

from __future__ import annotations

FOLDER = "/var/lib/rackwright/rollback"
"""On the node: what is armed, and what became of the last change of each key. Root alone reads it."""
PENDING = ("armed", "restoring")


def pending(key: str) -> str:
    """Shell: prints `armed` or `restoring` where a change of this key is neither confirmed nor put back."""
    return f"grep -xE '{'|'.join(PENDING)}' {FOLDER}/{key}/phase"
