"""Keeps the central journal on its server, on a timer: the audit trail apart, and what is too old or too much removed.

systemd-journal-remote removes files by size alone, whichever node floods, and before systemd 253 none at all. Entries about logins, sudo
and runs of rackwright are copied into separate files (`audit_files`), which are kept longer; of each node from the
entry on that was copied last, so that one that was cut off for days loses none. Nothing is removed before it was copied.

keeper             copy and remove
keeper --report    print what there is as JSON, and change nothing

Standard library, Python 3.9 or newer; runs as root.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import time
from typing import Any

from rackwright.logs import audit_files
from rackwright.logs.entries import AUDIT_FACILITIES, Entry, of_journal
from rackwright.logs.journal_files import Journalctl, JournalFile, journal_files, tries

SETTINGS = "/etc/rackwright/logs/keeper.json"
STATE = "/var/lib/rackwright/logs"
CURSORS = f"{STATE}/cursors.json"
LAST = f"{STATE}/last.json"
METRICS_NAME = "rackwright_logs.prom"
_BATCH = 10_000
"""Entries in memory at once."""
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
        self.errors: list[str] = []
        self.copied = 0
        self.removed = 0

    def run(self) -> None:
        """Copy, then remove."""
        try:
            files = journal_files(self.folder, self.sources)
        except FileNotFoundError:
            files = {}  # nothing has been sent yet
        cursors = _mapping(self.cursors_path)
        complete = True
        for node in sorted(files):
            try:
                self._copy(node, files[node], cursors)
            except OSError as error:
                complete = False
                self.errors.append(f"{node}: the audit trail is not complete: {error}")
        audit_files.compress_closed(self.audit, self.now)
        audit_files.drop_old(self.audit, self.now, self.settings["audit_days"])
        if complete:
            self._remove_old(files)
            self._remove_much(files)

    def _copy(self, node: str, files: list[JournalFile], cursors: dict[str, Any]) -> None:
        after = cursors.get(node)
        copied: set[Any] = {after}
        problems: list[str] = []
        for there in tries(self.folder, self.sources, node, files):
            problems = self._copy_from(after, node, there, copied, cursors)
        # what is left of a damaged file was copied
        self.errors += [f"{node}: {text}" for text in problems]

    def _copy_from(
        self,
        after: object,
        node: str,
        files: list[JournalFile],
        copied: set[Any],
        cursors: dict[str, Any],
    ) -> list[str]:
        """Entries from that one on which were not copied yet; what could not be read."""
        matches = " + ".join(f"SYSLOG_FACILITY={facility}" for facility in AUDIT_FACILITIES).split(" ")
        # systemd 252's --after-cursor leaves out the first entry where that of the cursor is gone
        journal = Journalctl(files, [f"--cursor={after}"] if isinstance(after, str) else [], matches)
        batch: list[Entry] = []
        for fields in journal:
            entry = of_journal(node, fields)
            if entry is None or entry["facility"] not in AUDIT_FACILITIES:
                continue
            after = fields.get("__CURSOR", after)
            if after in copied:
                continue
            copied.add(after)
            batch.append(entry)
            if len(batch) >= _BATCH:
                self._keep(node, batch, after, cursors)
                batch = []
        if batch or after != cursors.get(node):
            self._keep(node, batch, after, cursors)
        return journal.problems

    def _keep(self, node: str, batch: list[Entry], cursor: Any, cursors: dict[str, Any]) -> None:  # noqa: ANN401
        """Entries first, then how far they go: what is between two of these is copied again, never left out."""
        free = os.statvfs(self.audit)
        if free.f_bavail * free.f_frsize < self.settings["keep_free_bytes"] // 2:
            raise OSError(f"{self.audit} has less than half of keep_free left")
        self.copied += audit_files.append(self.audit, self.now, batch)
        cursors[node] = cursor
        _replace(self.cursors_path, json.dumps(cursors, sort_keys=True))

    def _remove_old(self, files: dict[str, list[JournalFile]]) -> None:
        """Closed files whose last entry is too old."""
        limit = self.now - self.settings["days"] * _DAY
        for found in files.values():
            for one in [one for one in found if one.archived and _last(one) < limit]:
                self._unlink(one, found)

    def _remove_much(self, files: dict[str, list[JournalFile]]) -> None:
        """The oldest closed file of the node with the most, until the rest fits: a node that floods loses its own lines."""
        used = {node: sum(map(_size, found)) for node, found in files.items()}
        total = sum(used.values())
        while used and (total > self.settings["max_bytes"] or self._is_short()):
            node = max(used, key=lambda name: used[name])
            closed = sorted((one for one in files[node] if one.archived), key=_last)
            if not closed:
                del used[node]  # what is open is not removed
                continue
            size = _size(closed[0])
            used[node] -= size
            total -= size
            self._unlink(closed[0], files[node])

    def _is_short(self) -> bool:
        disk = os.statvfs(self.folder)
        return disk.f_bavail * disk.f_frsize < int(self.settings["keep_free_bytes"])

    def _unlink(self, file: JournalFile, among: list[JournalFile]) -> None:
        with contextlib.suppress(FileNotFoundError):  # the receiver removes files by itself too
            os.unlink(file.path)
        among.remove(file)
        self.removed += 1


def _size(file: JournalFile) -> int:
    """Bytes on the disk."""
    try:
        return os.stat(file.path).st_blocks * 512
    except FileNotFoundError:
        return 0


def _last(file: JournalFile) -> float:
    """When its last entry was written; of a damaged one, when the file was."""
    times = file.times()
    if times:
        return times[1]
    try:
        return os.stat(file.path).st_mtime
    except FileNotFoundError:
        return 0.0


def _mapping(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _replace(path: str, text: str, mode: int = 0o600) -> None:
    """The whole file, on the disk."""
    new = path + ".new"
    with open(
        os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode), "w", encoding="utf-8"
    ) as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, path)


def metrics(settings: dict[str, Any], ran_at: float, failed: bool) -> str:
    """For node_exporter: how new each node's lines are, how much there is."""
    try:
        files = journal_files(settings["folder"], settings["sources"])
    except (OSError, ValueError):
        files = {}
    name = "rackwright_logs_newest_timestamp_seconds"
    lines = [f"# HELP {name} When the newest line of a node was written.", f"# TYPE {name} gauge"]
    size = 0
    for node in sorted(files):
        times = [one.times() for one in files[node]]
        size += sum(map(_size, files[node]))
        newest = max((time[1] for time in times if time), default=None)
        if newest is not None:
            lines.append(f'{name}{{node="{node}"}} {newest:.3f}')
    gauges = {
        "bytes": ("Size of the central journal.", size),
        "keeper_last_run_timestamp_seconds": ("When its keeper last ran.", round(ran_at, 3)),
        "keeper_failed": ("1 if the audit trail could not be copied whole.", int(failed)),
    }
    for short, (about, value) in gauges.items():
        metric = f"rackwright_logs_{short}"
        lines += [f"# HELP {metric} {about}", f"# TYPE {metric} gauge", f"{metric} {value}"]
    return "\n".join(lines) + "\n"


def report(settings: dict[str, Any], now: float) -> dict[str, Any]:
    """What there is, for `rackwright verify`."""
    files = journal_files(settings["folder"], settings["sources"])
    closed = [_last(one) for found in files.values() for one in found if one.archived]
    return {
        "version": 1,
        "now": now,
        "newest": {node: max((_last(one) for one in found), default=0.0) for node, found in files.items()},
        "oldest_closed": min(closed, default=None),
        "bytes": sum(_size(one) for found in files.values() for one in found),
        "audit_days": [day for day, _ in audit_files.days(settings["audit"])],
        "last": _mapping(LAST),
    }


def main() -> None:
    """One pass, alone; exits 1 where the audit trail is not complete."""
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
        last = {"at": keeper.now, "errors": keeper.errors, "copied": keeper.copied, "removed": keeper.removed}
        _replace(LAST, json.dumps(last, sort_keys=True))
        with contextlib.suppress(OSError):  # no node_exporter there
            text = metrics(settings, keeper.now, bool(keeper.errors))
            _replace(os.path.join(settings["textfiles"], METRICS_NAME), text, 0o644)
    print(f"copied {keeper.copied} entries of the audit trail, removed {keeper.removed} journal files")
    if keeper.errors:
        sys.exit("; ".join(keeper.errors[:5]))


if __name__ == "__main__":
    main()
