"""Copies entries about logins, sudo and rackwright runs from the central journal to the audit trail.

Standard library, Python 3.9.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from rackwright.logs.audit_bounds import Bounds
from rackwright.logs.audit_files import line_of
from rackwright.logs.entries import AUDIT_FACILITIES, of_journal
from rackwright.logs.journal_files import Journalctl, JournalFile

BATCH_BYTES = 4 * 2**20
"""Most lines in memory at once."""
RECENT = 10_000
"""Most cursors in memory at once. A re-read file has its newest entries among these; readers ignore
duplicates in the trail."""
_MATCHES = " + ".join(f"SYSLOG_FACILITY={facility}" for facility in AUDIT_FACILITIES).split(" ")


class AuditCopy:
    """Entries of one node, in one pass of the keeper."""

    def __init__(
        self, node: str, after: object, bounds: Bounds, keep: Callable[[list[bytes], object], None]
    ) -> None:
        """`after`: cursor of the entry that was copied last; `keep`: receives lines, and the last one's cursor."""
        self._node, self._after, self._bounds, self._keep = node, after, bounds, keep
        self._recent: OrderedDict[object, None] = OrderedDict.fromkeys([after])

    def read(self, files: list[JournalFile]) -> list[str]:
        """Copy entries from that one on; returns what could not be read."""
        # systemd 252's --after-cursor skips the first entry if the cursor's entry is gone
        options = [f"--cursor={self._after}"] if isinstance(self._after, str) else []
        journal = Journalctl(files, options, _MATCHES)
        lines: list[bytes] = []
        size, last = 0, self._after
        for fields in journal:
            entry = of_journal(self._node, fields)
            if entry is None or entry["facility"] not in AUDIT_FACILITIES:
                continue
            last = fields.get("__CURSOR", last)
            line = line_of(entry)
            if not self._is_new(last) or not self._bounds.takes(entry, len(line)):
                continue
            lines.append(line)
            size += len(line)
            if size >= BATCH_BYTES:
                self._keep(lines, last)
                lines, size = [], 0
        self._keep(lines, last)
        return journal.problems

    def _is_new(self, cursor: Any) -> bool:  # noqa: ANN401 - of JSON
        if cursor in self._recent:
            return False
        self._recent[cursor] = None
        if len(self._recent) > RECENT:
            self._recent.popitem(last=False)
        return True
