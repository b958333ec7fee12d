"""Journal files of systemd-journal-remote: whose they are, how old, and what journalctl reads in them.

Names: open_output() of systemd's src/journal-remote/journal-remote.c, with the peer's address; `sources` says whose that
is. Header: systemd.io/JOURNAL_FILE_FORMAT, "Header" (read 2026-11-27), a
stable format. Standard library, Python 3.9.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

from rackwright.logs.sources import nodes_by_address

_NAME = re.compile(r"remote-([0-9.]+)(@[^/]*)?\.journal(~?)")
_SIGNATURE = b"LPKSHHRH"
_TIMES = struct.Struct("<QQ")
_HEAD_REALTIME = 184
"""Offset of head_entry_realtime; tail_entry_realtime follows. Microseconds since the epoch."""
FIELDS = (
    "MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,SYSLOG_FACILITY,SYSLOG_PID"
    ",_PID,_UID,_COMM,_CAP_EFFECTIVE,_TRANSPORT,_SYSTEMD_UNIT,_SYSTEMD_CGROUP"
)
"""journalctl adds time and cursor."""


class JournalFile:
    """One file in the folder."""

    def __init__(self, folder: str, name: str, node: str, archived: bool) -> None:
        self.path = os.path.join(folder, name)
        self.node = node
        self.archived = archived
        """False: systemd-journal-remote may have it open."""

    def times(self) -> tuple[float, float] | None:
        """When its first and its last entry were written; None where it has none or is not such a file."""
        try:
            with open(self.path, "rb") as file:
                head = file.read(_HEAD_REALTIME + _TIMES.size)
        except OSError:
            return None
        if not head.startswith(_SIGNATURE) or len(head) < _HEAD_REALTIME + _TIMES.size:
            return None
        first, last = _TIMES.unpack_from(head, _HEAD_REALTIME)
        return (first / 1e6, last / 1e6) if last else None


def journal_files(folder: str, sources: str) -> dict[str, list[JournalFile]]:
    """By node; OSError or ValueError where that cannot be read. Files of unknown peers are left out."""
    nodes = nodes_by_address(sources)
    found: dict[str, list[JournalFile]] = {}
    for name in sorted(os.listdir(folder)):
        match = _NAME.fullmatch(name)
        if match and match.group(1) in nodes:
            node = nodes[match.group(1)]
            archived = bool(match.group(2) or match.group(3))
            found.setdefault(node, []).append(JournalFile(folder, name, node, archived))
    return found


def newest(folder: str, sources: str, nodes: list[str]) -> dict[str, float | None]:
    """When the newest entry of each node was written there."""
    there = journal_files(folder, sources)
    found: dict[str, float | None] = {}
    for node in nodes:
        times = [one.times() for one in there.get(node, ())]
        found[node] = max((time[1] for time in times if time), default=None)
    return found


class Journalctl:
    """One reading of files; `errors` has what it complained about, once it has ended."""

    def __init__(self, paths: list[str], arguments: list[str]) -> None:
        files = [f"--file={path}" for path in paths]
        self._command = ["journalctl", "--quiet", "--no-pager", "--all", "--output=json", *files]
        self._command += [f"--output-fields={FIELDS}", *arguments]
        self.errors = ""
        self.status = 0
        """Its exit status, where it was read to its end."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with tempfile.TemporaryFile() as errors:
            child = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
            try:
                for line in child.stdout or ():
                    entry = _entry(line)
                    if entry is not None:
                        yield entry
                self.status = child.wait()
            finally:
                child.kill()  # it may be left before its end
                child.wait()
                errors.seek(0)
                self.errors = errors.read(4096).decode("utf-8", "replace").strip()


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
