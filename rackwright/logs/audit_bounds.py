"""How much users may write into the audit trail: each of them may log to its facilities, as much as journald takes.

Standard library, Python 3.9.
"""

from __future__ import annotations

from collections import Counter

from rackwright.logs.entries import Entry

WINDOW_SECONDS = 300
"""By the node's clock, so that a backlog after an outage does not count as a flood."""
USER_BYTES = 2**20
"""In that time: sudo writes some 1200 bytes each time it runs."""
NODE_BYTES = 4 * 2**20
"""Of all users together: one with a user namespace may write with many user ids."""


class Bounds:
    """Those of one node, in one pass of the keeper. What root or the kernel wrote is never left out."""

    def __init__(self, closed: bool) -> None:
        """`closed`: nothing of users is taken, since the disk is short."""
        self.left_out: Counter[int | None] = Counter()
        """By user id."""
        self._closed = closed
        self._window: float | None = None
        self._spent: Counter[int | None] = Counter()
        self._together = 0

    def takes(self, entry: Entry, size: int) -> bool:
        """Whether an entry of this size, in bytes, still fits."""
        if entry["trusted"]:
            return True
        window, user = entry["at"] // WINDOW_SECONDS, entry["uid"]
        if window != self._window:
            self._window = window
            self._spent.clear()
            self._together = 0
        too_much = self._spent[user] + size > USER_BYTES or self._together + size > NODE_BYTES
        if self._closed or too_much:
            self.left_out[user] += 1
            return False
        self._spent[user] += size
        self._together += size
        return True

    def summary(self, node: str, now: float) -> Entry | None:
        """What the trail has in place of what was left out."""
        if not self.left_out:
            return None
        users = ", ".join(f"uid {user}: {count}" for user, count in self.left_out.most_common(5))
        return {
            "node": node,
            "at": now,
            "message": f"entries of users were left out of the audit trail: {sum(self.left_out.values())} ({users})",
            "name": "rackwright-logs-keeper",
            "priority": 4,
            "facility": 10,
            "uid": 0,
            "trusted": True,
        }
