"""Journal files of systemd-journal-remote: which node's they are, their age, and what journalctl reads from them.

Names: open_output() of systemd's src/journal-remote/journal-remote.c, with the peer's address; `sources` maps it
to a node. Header: systemd.io/JOURNAL_FILE_FORMAT, "Header" (read 2026-11-27), a
stable format. Standard library, Python 3.9.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import subprocess
import threading
from collections.abc import Generator, Iterable, Iterator
from typing import IO, Any

from rackwright.logs.sources import nodes_by_address

_NAME = re.compile(r"remote-([0-9.]+)(@[^/]*)?\.journal(~?)")
_SIGNATURE = b"LPKSHHRH"
_TIMES = struct.Struct("<QQ")
_HEAD_REALTIME = 184
"""Offset of head_entry_realtime; tail_entry_realtime follows. Microseconds since the epoch."""
_SERIES, _TAIL_NUMBER = slice(72, 88), slice(160, 168)
"""seqnum_id and tail_entry_seqnum."""
_CURSOR = re.compile(r"s=([0-9a-f]{32});i=([0-9a-f]{1,16});")
"""src/libsystemd/sd-journal/sd-journal.c, sd_journal_get_cursor(): seqnum_id and sequence number."""
FIELDS = (
    "MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,SYSLOG_FACILITY,SYSLOG_PID"
    ",_PID,_UID,_COMM,_TRANSPORT,_SYSTEMD_UNIT,_SYSTEMD_CGROUP"
)
"""journalctl adds times, boot and cursor."""
LINE_MAX = 4 * 2**20
"""Longest entry in bytes of JSON. A user may log 32 MiB at once, which becomes a GiB in memory if it is not UTF-8."""
_LOUD = {"SYSTEMD_LOG_LEVEL": "debug", "SYSTEMD_LOG_TARGET": "console-prefixed", "SYSTEMD_LOG_COLOR": "0"}
_TRIES = 3
_LEVEL = re.compile(r"<([0-9]{1,3})>")
_WARNING = 4
"""syslog(3)."""
_DAMAGE = re.compile(
    r"is bad, skipping over it|invalid entry while bisecting"
    r"|^(?:Attempt to move to|Can't iterate through|Failed to open journal file) "
)
"""Messages about damaged files, which journalctl skips silently, with exit status 0, unless it runs at debug level
(src/libsystemd/sd-journal of systemd 252 and 257)."""


class JournalFile:
    """One file in the folder."""

    def __init__(self, entry: os.DirEntry[str], node: str, archived: bool) -> None:
        self.path = entry.path
        self.node = node
        self.archived = archived
        """False: systemd-journal-remote may have it open."""
        self._inode = entry.inode()

    @property
    def moved(self) -> bool:
        """Whether another file, or none, now has its name: it was closed or removed since."""
        try:
            return os.stat(self.path).st_ino != self._inode
        except FileNotFoundError:
            return True

    @property
    def written(self) -> float:
        """When it was last written to, by this server's clock; 0 if it is gone."""
        try:
            return os.stat(self.path).st_mtime
        except FileNotFoundError:
            return 0.0

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        try:
            return os.stat(self.path).st_blocks * 512
        except FileNotFoundError:
            return 0

    @property
    def last(self) -> float:
        """Time of its last entry; for a damaged file, its modification time."""
        times = self.times()
        return times[1] if times else self.written

    def times(self) -> tuple[float, float] | None:
        """Times of its first and last entry, by the node's clock; None if it has none or is not a journal file."""
        head = self._head()
        first, last = _TIMES.unpack_from(head, _HEAD_REALTIME) if head else (0, 0)
        return (first / 1e6, last / 1e6) if last else None

    def is_before(self, cursor: object) -> bool:
        """Whether its last entry is known to be the cursor's, or an earlier one of the same series."""
        head, match = self._head(), _CURSOR.match(cursor) if isinstance(cursor, str) else None
        if not head or match is None or head[_SERIES].hex() != match[1]:
            return False
        return int.from_bytes(head[_TAIL_NUMBER], "little") <= int(match[2], 16)

    def _head(self) -> bytes:
        """Its header; empty if it has none."""
        try:
            with open(self.path, "rb") as file:
                head = file.read(_HEAD_REALTIME + _TIMES.size)
        except OSError:
            return b""
        return head if head.startswith(_SIGNATURE) and len(head) == _HEAD_REALTIME + _TIMES.size else b""


def journal_files(folder: str, sources: str) -> dict[str, list[JournalFile]]:
    """Files by node; OSError or ValueError if they cannot be listed. Files of unknown peers are skipped."""
    nodes = nodes_by_address(sources)
    found: dict[str, list[JournalFile]] = {}
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            match = _NAME.fullmatch(entry.name)
            if match and match.group(1) in nodes:
                node = nodes[match.group(1)]
                archived = bool(match.group(2) or match.group(3))
                found.setdefault(node, []).append(JournalFile(entry, node, archived))
    return found


def tries(folder: str, sources: str, node: str, files: list[JournalFile]) -> Iterator[list[JournalFile]]:
    """A node's files, and again after each time that one of them was closed and renamed while they were read."""
    for _ in range(_TRIES):
        if files:  # without any, journalctl would read the server's journal
            yield files
        if not any(one.moved for one in files):
            return
        files[:] = journal_files(folder, sources).get(node, [])


def overlapping(files: list[JournalFile], since: float, until: float) -> list[JournalFile]:
    """Files that may have entries of that time.

    A node's clock may have been wrong for a while. So the time between their first and last entries is widened by when
    the files were written, by this server's clock.
    """
    found, before = [], 0.0
    for file in sorted(files, key=lambda one: one.written):
        first, last = file.times() or (0.0, math.inf)
        if min(first, before) <= until and max(first, last, file.written) >= since:
            found.append(file)
        before = file.written
    return found


def newest(folder: str, sources: str, nodes: list[str]) -> dict[str, float | None]:
    """Time of each node's newest entry there."""
    there = journal_files(folder, sources)
    found: dict[str, float | None] = {}
    for node in nodes:
        times = [one.times() for one in there.get(node, ())]
        found[node] = max((time[1] for time in times if time), default=None)
    return found


class Journalctl:
    """Reads a node's files. Afterwards, `problems` lists what could not be read, and `too_long` counts
    entries that were skipped because of their size."""

    def __init__(self, files: list[JournalFile], options: list[str], matches: list[str]) -> None:
        """`matches` filter entries early: from a damaged file, others come as well."""
        by_age = sorted(files, key=lambda one: (not one.archived, one.times() or (0.0, 0.0)))
        self._paths = [one.path for one in (reversed(by_age) if "--reverse" in options else by_age)]
        self._options, self._matches = options, matches
        self.problems: list[str] = []
        self.too_long = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Entries; from damaged files all that is readable, with some duplicates."""
        together = Run(self._paths, self._options + self._matches)
        try:
            yield from together
            if not together.complaint:
                return
            # One file that cannot be opened hides all others, and a damaged index hides whole entries: read each file alone.
            for path in self._paths:
                alone = Run([path], self._options)
                yield from alone
                if alone.complaint:
                    self.problems.append(f"cannot read all of {os.path.basename(path)}: {alone.complaint}")
        finally:  # the caller may stop early
            self.too_long = together.too_long
            if together.complaint and not self.problems:
                self.problems.append(f"cannot read all of a journal file: {together.complaint}")


class Run:
    """One run of journalctl."""

    def __init__(self, paths: list[str], arguments: list[str]) -> None:
        files = [f"--file={path}" for path in paths]
        self._command = ["journalctl", "--quiet", "--no-pager", "--all", "--output=json", *files]
        self._command += [f"--output-fields={FIELDS}", *arguments]
        self.complaint = ""
        """The first thing that it could not read."""
        self.too_long = 0

    def __iter__(self) -> Generator[dict[str, Any], None, None]:
        """Entries."""
        for line in self.lines():
            entry = _entry(line)
            if entry is not None:
                yield entry

    def lines(self) -> Iterator[bytes]:
        """Its output, without lines that are too long."""
        child = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **_LOUD},
        )
        listener = threading.Thread(target=self._listen, args=(child.stderr,))
        listener.start()
        status = 0
        try:
            if child.stdout is not None:
                yield from self._short(child.stdout)
            status = child.wait()
        finally:
            child.kill()  # the caller may stop early
            child.wait()
            listener.join()
        if status != 0 and not self.complaint:
            self.complaint = f"journalctl exited {status}"

    def _short(self, output: IO[bytes]) -> Iterator[bytes]:
        within = False
        while part := output.readline(LINE_MAX):
            ends = part.endswith(b"\n")
            if ends and not within:
                yield part
            self.too_long += ends and within
            within = not ends

    def _listen(self, errors: Iterable[bytes]) -> None:
        for line in errors:
            match = _LEVEL.match(text := line.decode("utf-8", "replace").strip())
            level, said = (int(match[1]) % 8, text[match.end() :]) if match else (_WARNING, text)
            if said and not self.complaint and (level <= _WARNING or _DAMAGE.search(said)):
                self.complaint = said


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
