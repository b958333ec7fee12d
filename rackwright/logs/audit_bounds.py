"""Limits how much users can write into the audit trail: they may log to its facilities, as fast as journald allows.

Standard library, Python 3.9.
"""

from __future__ import annotations

from collections import Counter

from rackwright.logs.entries import Entry

WINDOW_SECONDS = 300
"""Interval, by the node's clock, so that a backlog after an outage does not count as a flood."""
USER_BYTES = 2**20
"""Bytes per user and interval: sudo writes about 1200 bytes per run."""
NODE_BYTES = 4 * 2**20
"""Bytes of all users together: one with a user namespace may write with many user ids."""


class Bounds:
    """Limits for one node and one pass of the keeper. Entries of root or the kernel are never dropped."""

    def __init__(self, closed: bool) -> None:
        """`closed`: accept nothing from users, because disk space is short."""
        self.left_out: Counter[int | None] = Counter()
        """By user id."""
        self._closed = closed
        self._window: float | None = None
        self._spent: Counter[int | None] = Counter()
        self._together = 0

    def takes(self, entry: Entry, size: int) -> bool:
        """Whether an entry of this size, in bytes, is within the limits."""
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
        """Summary entry for what was dropped."""
        if not self.left_out:
            return None
        users = ", ".join(f"uid {user}: {count}" for user, count in self.left_out.most_common(5))
        return {
            "node": node,
            "at": now,
            "message": f"entries of users were dropped from the audit trail: {sum(self.left_out.values())} ({users})",
            "name": "rackwright-logs-keeper",
            "priority": 4,
            "facility": 10,
            "uid": 0,
            "trusted": True,
        }
