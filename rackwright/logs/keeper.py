"""Maintains the central journal on its server, on a timer: copies the audit trail, and removes what is too old or too much.

systemd-journal-remote removes files only by size, whichever node floods, and before systemd 253 not at all. Entries about
logins, sudo and rackwright runs are copied into separate files (`audit_files`) with a longer retention; for each node
starting after the last copied entry, so that one that was disconnected for days loses none. Nothing is removed before it was
copied, except what users write in a flood (`audit_bounds`).

keeper             copy and remove
keeper --report    print the current state as JSON, and change nothing

Standard library, Python 3.9 or newer; runs as root.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import time
from functools import partial
from typing import Any

from rackwright.logs import audit_files, keeper_metrics
from rackwright.logs.audit_bounds import Bounds
from rackwright.logs.audit_copy import AuditCopy
from rackwright.logs.audit_files import line_of
from rackwright.logs.journal_files import JournalFile, journal_files, tries

SETTINGS = "/etc/rackwright/logs/keeper.json"
STATE = "/var/lib/rackwright/logs"
CURSORS = f"{STATE}/cursors.json"
LAST = f"{STATE}/last.json"
_DAY = 86400


class Keeper:
    """One pass."""

    def __init__(self, settings: dict[str, Any], now: float, root: str = "") -> None:
        self.settings = settings
        self.now = now
        self.folder = root + settings["folder"]
        self.sources = root + settings["sources"]
        self.audit = root + settings["audit"]
        self.cursors_path = root + CURSORS
        self.cursors: dict[str, Any] = {}
        """By node: cursor of the entry that was copied last."""
        self.incomplete: set[str] = set()
        """Nodes whose entries could not all be copied."""
        self.errors: list[str] = []
        self.copied = self.left_out = self.removed = 0

    def run(self) -> None:
        """Copy, then remove."""
        try:
            files = journal_files(self.folder, self.sources)
        except FileNotFoundError:
            files = {}  # nothing has been received yet
        self.cursors = _mapping(self.cursors_path)
        for node in sorted(files):
            try:
                self._copy(node, files[node])
            except OSError as error:
                self.incomplete.add(node)
                self.errors.append(f"{node}: the audit trail is incomplete: {error}")
        audit_files.drop_old(self.audit, self.now, self.settings["audit_days"])
        self._remove_old(files)
        self._remove_much(files)
        audit_files.compress_closed(self.audit, self.now)  # last, because it needs disk space

    def _copy(self, node: str, files: list[JournalFile]) -> None:
        keep_free: int = self.settings["keep_free_bytes"]
        bounds = Bounds(closed=_free(self.audit) < keep_free)
        copy = AuditCopy(node, self.cursors.get(node), bounds, partial(self._keep, node))
        problems: list[str] = []
        for there in tries(self.folder, self.sources, node, files):
            problems = copy.read(there)
        # the readable part of a damaged file was copied
        self.errors += [f"{node}: {text}" for text in problems]
        self.left_out += sum(bounds.left_out.values())
        summary = bounds.summary(node, self.now)
        if summary is not None:
            self._append([line_of(summary)])

    def _keep(self, node: str, lines: list[bytes], cursor: object) -> None:
        """Write lines first, then their cursor: after a crash in between, entries are copied twice, never lost."""
        if lines:
            self._append(lines)
            self.copied += len(lines)
        if cursor != self.cursors.get(node):
            self.cursors[node] = cursor
            _replace(self.cursors_path, json.dumps(self.cursors, sort_keys=True))

    def _append(self, lines: list[bytes]) -> None:
        if _free(self.audit) < self.settings["keep_free_bytes"] // 2:
            raise OSError(f"{self.audit} has less than half of keep_free left")
        audit_files.append(self.audit, self.now, lines)

    def _may_go(self, file: JournalFile) -> bool:
        """Whether it is closed, and everything the trail needs was copied."""
        node = file.node
        return file.archived and (node not in self.incomplete or file.is_before(self.cursors.get(node)))

    def _remove_old(self, files: dict[str, list[JournalFile]]) -> None:
        """Closed files whose last entry is too old."""
        limit = self.now - self.settings["days"] * _DAY
        for found in files.values():
            for one in [one for one in found if one.last < limit and self._may_go(one)]:
                self._unlink(one, found)

    def _remove_much(self, files: dict[str, list[JournalFile]]) -> None:
        """The oldest closed files of the largest node, until the rest fits: a node that floods loses its own lines."""
        used = {node: sum(one.size for one in found) for node, found in files.items()}
        total = sum(used.values())
        max_bytes, keep_free = self.settings["max_bytes"], self.settings["keep_free_bytes"]
        while used and (total > max_bytes or _free(self.folder) < keep_free):
            node = max(used, key=lambda name: used[name])
            closed = sorted(filter(self._may_go, files[node]), key=lambda one: one.last)
            if not closed:
                del used[node]  # open files are not removed
                continue
            size = closed[0].size
            used[node] -= size
            total -= size
            self._unlink(closed[0], files[node])

    def _unlink(self, file: JournalFile, among: list[JournalFile]) -> None:
        with contextlib.suppress(FileNotFoundError):  # the receiver removes files too
            os.unlink(file.path)
        among.remove(file)
        self.removed += 1


def _free(path: str) -> int:
    """Bytes."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


def _mapping(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _replace(path: str, text: str, mode: int = 0o600) -> None:
    """Write the whole file, on disk when this returns."""
    new = path + ".new"
    with open(
        os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode), "w", encoding="utf-8"
    ) as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, path)


def _write_down(keeper: Keeper) -> None:
    """Record how a pass ended. node_exporter gets it even if the disk is too full for our own file."""
    last = {
        "at": keeper.now,
        "errors": keeper.errors,
        "copied": keeper.copied,
        "left_out": keeper.left_out,
        "removed": keeper.removed,
    }
    try:
        _replace(LAST, json.dumps(last, sort_keys=True))
    except OSError as error:
        keeper.errors.append(f"cannot write {LAST}: {error}")
    text = keeper_metrics.metrics(keeper.settings, keeper.now, bool(keeper.errors), keeper.left_out)
    with contextlib.suppress(OSError):  # node_exporter is not installed
        _replace(os.path.join(keeper.settings["textfiles"], keeper_metrics.NAME), text, 0o644)


def report(settings: dict[str, Any], now: float) -> dict[str, Any]:
    """The current state, for `rackwright verify`."""
    files = journal_files(settings["folder"], settings["sources"])
    closed = [one.last for found in files.values() for one in found if one.archived]
    return {
        "version": 1,
        "now": now,
        "newest": {node: max((one.last for one in found), default=0.0) for node, found in files.items()},
        "oldest_closed": min(closed, default=None),
        "bytes": sum(one.size for found in files.values() for one in found),
        "audit_days": [day for day, _ in audit_files.days(settings["audit"])],
        "last": _mapping(LAST),
    }


def main() -> None:
    """One pass; exits 1 if the audit trail is incomplete."""
    os.umask(0o077)
    with open(SETTINGS, encoding="utf-8") as file:
        settings = json.load(file)
    if sys.argv[1:] == ["--report"]:
        try:
            print(json.dumps(report(settings, time.time())))
        except (OSError, ValueError) as error:
            sys.exit(str(error))
        return
    with open(f"{STATE}/lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        keeper = Keeper(settings, time.time())
        try:
            keeper.run()
        except (OSError, ValueError) as error:
            keeper.errors.append(str(error))
        _write_down(keeper)
    print(f"copied {keeper.copied} entries of the audit trail, removed {keeper.removed} journal files")
    if keeper.errors:
        sys.exit("; ".join(keeper.errors[:5]))


if __name__ == "__main__":
    main()
