"""The journal of a node's installations: every change of state, on disk before it takes effect.

One file of JSON lines per node, in the state folder. The record is the sum of its lines, so a run that
was killed resumes from the last line. Tokens and sessions are stored only as SHA-256.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from typing import Any

from rackwright.atomic_write import sync_folder
from rackwright.bmc.interface import BmcIdentity
from rackwright.errors import InstallError
from rackwright.install import steady
from rackwright.install.states import UNDER_WAY, WRITING, State, may_follow
from rackwright.state_folder import state_folder

Event = dict[str, Any]


@dataclass
class Record:
    """The sum of a node's journal."""

    node: str
    state: State = State.DECLARED
    run: str = ""
    mode: str = ""
    since: float = 0.0
    """When the state was entered, seconds since 1970."""
    was_ready: bool = False
    """Whether any run ever finished; stays true until the node's disks are erased."""
    stands: bool = False
    """Whether the last run that wrote its disks finished, so its installation is intact."""
    reason: str = ""
    """Reason of the last change of state, printable."""
    serial: str = ""
    """Serial number of the machine, as its BMC printed it before power-on."""
    uuid: str = ""
    """UUID, as above; identifies the machine if it has no serial number."""
    mac: str = ""
    """MAC address of the port by which the agent reaches the head."""
    token: str = ""
    token_until: float = 0.0
    session: str = ""
    image: str = ""
    """SHA-256 of the image of this run, or of the answers for the distribution's installer."""
    disks: list[dict[str, Any]] = field(default_factory=list)
    """Disks that were approved for the distribution's installer, as they were found."""
    answers: str = ""
    """Random folder of its answers on the answers server."""
    confirmed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Serial of a disk to the signatures that were confirmed in this run; for an erasure see erasure.py."""
    held: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Serial of a disk to the signatures that wait for confirmation."""
    inventory: dict[str, Any] = field(default_factory=dict)
    host_key: str = ""
    phase: str = ""
    percent: int = 0
    media: str = ""
    """Server path of this run's boot medium."""

    def take(self, event: Event) -> None:
        """Apply one line of the journal."""
        if "state" in event:
            self.state, self.since = State(event["state"]), float(event["at"])
            self.reason = str(event.get("reason", ""))
            # after an erasure there is nothing to protect
            self.was_ready = self.state is State.READY or (self.was_ready and self.state is not State.ERASED)
            self.stands = self.state is State.READY or (self.stands and self.state not in WRITING)
            if self.state is State.PRECHECKED:
                self._begin(event)
            if self.state is State.FAILED:
                self.token = self.session = self.answers = ""
                self.confirmed, self.held, self.disks = {}, {}, []
        for key in (
            "token",
            "token_until",
            "session",
            "serial",
            "uuid",
            "mac",
            "image",
            "disks",
            "answers",
            "inventory",
            "host_key",
            "phase",
            "percent",
            "media",
        ):
            if key in event:
                setattr(self, key, event[key])
        for key in ("confirmed", "held"):
            if key in event:
                setattr(self, key, _signatures(event[key]))
        # another process may write its confirmation when this run has ended and the next has started
        if "confirm" in event and event["of"] == self.run and self.state in UNDER_WAY:
            self.confirmed = self.confirmed | _signatures(event["confirm"])

    def is_of(self, identity: BmcIdentity) -> bool:
        """Whether the last run worked on the BMC's current machine."""
        if identity.serial is not None:
            return self.serial == identity.serial
        return bool(identity.uuid) and (self.serial, self.uuid) == ("", identity.uuid)

    def lose(self) -> None:
        """Apply an unreadable line: it may have ended a run, spent the token, or marked the node as ready."""
        self.was_ready, self.stands = True, False
        self.token, self.confirmed, self.held = "", {}, {}
        self.answers, self.disks = "", []  # it may have recorded that the session was served

    def _begin(self, event: Event) -> None:
        """A new run: nothing of an earlier one counts, least of all confirmations."""
        self.run, self.mode = str(event["run"]), str(event["mode"])
        self.token = self.session = self.image = self.host_key = self.phase = self.media = self.answers = ""
        self.percent, self.confirmed, self.held, self.inventory, self.disks = 0, {}, {}, {}, []


def _signatures(found: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    return {disk: tuple(signs) for disk, signs in found.items()}


class Journal:
    """The journal of one node. Thread-safe within a process; `claim` keeps other processes out."""

    def __init__(self, cluster: str, node: str) -> None:
        self._path = folder(cluster) / f"{node}.jsonl"
        self._node = node
        self._lock = RLock()
        self._size, self._record = -1, Record(node)

    @property
    def folder(self) -> Path:
        """Where the journals of the cluster are."""
        return self._path.parent

    @property
    def record(self) -> Record:
        """A copy of the current record; another process may have confirmed a disk."""
        with self._lock:
            size = self._path.stat().st_size if self._path.exists() else 0
            if size != self._size:
                self._record, self._size = _fold(self._path, self._node)
            return self._record

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Lock the node for this process; InstallError if another one is installing it."""
        path = self._path.with_suffix(".lock")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(handle, 200, 0).decode(errors="replace").strip()
                raise InstallError(
                    f"Another process{f' ({holder})' if holder else ''} is installing {self._node}.",
                    hint="wait for it, or stop it and run again: the installation resumes where it was",
                ) from None
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
            yield
        finally:
            os.close(handle)

    @contextmanager
    def changing(self) -> Iterator[Record]:
        """The record, while no other thread changes it."""
        with self._lock:
            yield self.record

    def move(self, state: State, reason: str = "", **data: Any) -> None:  # noqa: ANN401 - JSON data
        """Enter a state; the line is on disk when this returns. InstallError for an invalid transition."""
        with self._lock:
            before = self.record.state
            if not may_follow(before, state):
                raise InstallError(f"{self._node} cannot go from {before} to {state}.")
            self._write({"state": state.value, "reason": reason, **data})

    def fail(self, reason: str, only: State | None = None) -> bool:
        """Record a failure unless nothing is in progress; returns whether it was recorded.

        + only: record it in this state only: the agent may have progressed in the meantime
        """
        with self.changing() as record:
            if not may_follow(record.state, State.FAILED) or only not in (None, record.state):
                return False
            self.move(State.FAILED, reason)
            return True

    def note(self, **data: Any) -> None:  # noqa: ANN401
        """Add information without a change of state."""
        with self._lock:
            self._write(data)

    def _write(self, data: Event) -> None:
        record = self.record
        event = {"at": round(steady.now(), 3), **data}
        line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                line = b"\n" + line  # a run was killed in the middle of a line
            if os.write(handle, line) < len(line):
                os.ftruncate(handle, size)  # half a line would count as damage
                raise OSError(errno.ENOSPC, "the journal's file system is full", str(self._path))
            os.fsync(handle)
        finally:
            os.close(handle)
        if not size:
            sync_folder(self._path.parent)
        if size == self._size:
            changed = replace(record)
            changed.take(json.loads(line))
            self._record, self._size = changed, size + len(line)


def folder(cluster: str) -> Path:
    """Where the journals of a cluster are."""
    path = state_folder(cluster) / "install"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def read(cluster: str, node: str) -> Record:
    """The record of a node."""
    return _fold(folder(cluster) / f"{node}.jsonl", node)[0]


def _fold(path: Path, node: str) -> tuple[Record, int]:
    """The record, and the size of what was read for it."""
    record, content = Record(node), b""
    with suppress(FileNotFoundError), path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # do not read half a line that another process is writing
        content = file.read()
    for line in filter(None, content.split(b"\n")):
        try:
            event = json.loads(line)
            if not isinstance(event, dict):
                raise TypeError
            record.take(event)
        except (ValueError, KeyError, TypeError, AttributeError):
            record.lose()
    return record, len(content)
