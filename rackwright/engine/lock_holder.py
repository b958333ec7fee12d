"""Holds a cluster's lock on a head for a run on another machine, and stores that run's journal there.

Runs on the head as root, standard library only, Python 3.9 or newer. Its input is the run's ssh channel: the first
line identifies the run, every further line is a journal event, and an empty line requests an answer. The
lock is the kernel's (flock): it ends with this process, which ends with the channel, or once the run has been silent
for too long, e.g. after a network outage. No manual cleanup is needed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import select
import stat
import sys
import syslog
import time
from typing import Any

from rackwright.engine import audit_lines

RUN_NAME = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}")
CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
KEPT = 100
"""Number of journals kept per cluster; older ones are removed when a run starts."""
LINE_MAX = 1 << 20


class Refuse(Exception):  # noqa: N818 - reads as an order
    """The lock cannot be taken here; the text is the reason."""


def boot() -> str:
    """Boot id of this machine: times since boot are comparable even if its clock changes."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def uptime() -> float:
    """Seconds since boot, including suspends."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def folder(path: str, mode: int) -> str:
    """A folder writable only by root, created if missing."""
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        pass
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise Refuse(path + " is not a folder that only root may write")
    return path


def read_record(path: str) -> dict[str, Any] | None:
    """Who holds the lock, or held it last."""
    try:
        with open(path) as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


class Holder:
    """One run's hold of the lock."""

    def __init__(self, begin: dict[str, Any]) -> None:
        self.begin = begin["by"]
        self.silent = float(begin["silent_seconds"])
        cluster, run = begin["cluster"], self.begin["run"]
        if not CLUSTER_NAME.fullmatch(cluster) or not RUN_NAME.fullmatch(run):
            raise Refuse("%r of %r is not a valid run name" % (run, cluster))
        locks = folder(begin["locks"], 0o755)
        self.journals = begin["journals"]
        self.cluster = cluster
        self.record = os.path.join(locks, cluster + ".run")
        self.path = os.path.join(locks, cluster + ".lock")
        self.problem: str | None = None

    def take(self) -> dict[str, Any] | None:
        """None, or the record of the run that holds the lock."""
        # Not readable for others: anyone who can open a file can lock it.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self.lock = os.open(self.path, flags, 0o600)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            return read_record(self.record) or {}
        return None

    def previous(self) -> dict[str, Any] | None:
        """The run that held the lock before, and how many seconds ago it was last active (None: before a reboot)."""
        found = read_record(self.record)
        if found is None:
            return None
        seen = found.get("seen")
        if found.get("boot") != boot() or not isinstance(seen, (int, float)):
            return {"run": found.get("run"), "idle_seconds": None}
        return {"run": found.get("run"), "idle_seconds": max(uptime() - seen, 0)}

    def note(self, *, ended: bool = False) -> None:
        """Record who holds the lock, readable by everyone."""
        new = self.record + ".new"
        text = json.dumps(dict(self.begin, boot=boot(), seen=uptime(), ended=ended))
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(descriptor, 0o644)
            file.write(text)
        os.rename(new, self.record)

    def append(self, lines: list[bytes]) -> None:
        """Append `RUN<tab>EVENT` lines to the journals of those runs; a full disk is reported, not fatal."""
        try:
            place = self.own_folder()
            by_run: dict[str, list[bytes]] = {}
            for line in lines:
                run, _, event = line.partition(b"\t")
                if RUN_NAME.fullmatch(run.decode("ascii", "replace")) and event:
                    by_run.setdefault(run.decode(), []).append(event + b"\n")
            for name, events in by_run.items():
                self.write(os.path.join(place, name + ".jsonl"), b"".join(events))
                for line in events:
                    note_for_auditors(audit_lines.line_of(name, line))
            self.problem = None
        except (OSError, Refuse) as error:
            self.problem = getattr(error, "strerror", None) or str(error)

    def own_folder(self) -> str:
        """The folder of this cluster's journals."""
        above = os.path.dirname(self.journals)
        if not os.path.isdir(above):
            folder(above, 0o755)
        return folder(os.path.join(folder(self.journals, 0o700), self.cluster), 0o700)

    def write(self, path: str, content: bytes) -> None:
        """Append whole lines, on disk when this returns."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                content = b"\n" + content  # a line was cut off when this machine or its disk failed
            while content:
                content = content[os.write(descriptor, content) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def drop_old(self) -> None:
        """Keep the most recently written journals."""
        try:
            place = self.own_folder()
            found = [os.path.join(place, name) for name in os.listdir(place) if name.endswith(".jsonl")]
            for path in sorted(found, key=lambda path: os.lstat(path).st_mtime)[:-KEPT]:
                os.unlink(path)
        except (OSError, Refuse) as error:
            self.problem = getattr(error, "strerror", None) or str(error)

    def hold(self, rest: bytes) -> None:
        """Serve until the run ends, is silent for too long, or disconnects."""
        while True:
            *lines, rest = rest.split(b"\n")
            if any(lines):
                self.append([line for line in lines if line])
            if b"" in lines:
                self.note()
                say({"held": True, "problem": self.problem})
            if len(rest) > LINE_MAX or not select.select([0], [], [], self.silent)[0]:
                return
            more = os.read(0, 1 << 16)
            if not more:
                return
            rest += more


def note_for_auditors(text: str | None) -> None:
    """Log to the head's systemd journal, which outlives the run's journals."""
    if text is not None:
        syslog.syslog(syslog.LOG_AUTHPRIV | syslog.LOG_NOTICE, text)


def say(answer: dict[str, Any]) -> None:
    """Answer the run."""
    os.write(1, json.dumps(answer).encode() + b"\n")


def first_line() -> tuple[bytes, bytes]:
    """The first line, and further data read with it."""
    text = b""
    while b"\n" not in text and len(text) < LINE_MAX:
        more = os.read(0, 1 << 16) if select.select([0], [], [], 60)[0] else b""
        if not more:
            sys.exit(1)
        text += more
    line, _, rest = text.partition(b"\n")
    return line, rest


def main() -> None:
    """Hold the lock, or report who holds it."""
    begin, rest = first_line()
    try:
        holder = Holder(json.loads(begin))
        taken_by = holder.take()
        if taken_by is not None:
            say({"held": False, "by": taken_by})
            return
        previous = holder.previous()
        holder.note()
    except (Refuse, OSError) as error:
        say({"held": None, "why": str(error)})
        return
    holder.drop_old()
    syslog.openlog("rackwright", syslog.LOG_PID)
    note_for_auditors(audit_lines.began(holder.cluster, holder.begin))
    try:
        say({"held": True, "previous": previous, "problem": holder.problem})
        holder.hold(rest)
    except OSError:
        pass  # the peer is gone
    note_for_auditors(audit_lines.ended(holder.cluster, holder.begin["run"]))
    try:
        holder.note(ended=True)
    except OSError:
        pass


if __name__ == "__main__":
    main()
