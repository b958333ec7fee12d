"""The journal of a node's installations: every change of state, on disk before anything is done because of it.

One file of JSON lines for each node, below the state folder. The record is what its lines add up to, so a run that
was killed goes on where the last line left it. Tokens and sessions are kept as SHA-256 alone.
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
    """What a node's journal adds up to."""

    node: str
    state: State = State.DECLARED
    run: str = ""
    mode: str = ""
    since: float = 0.0
    """When the state was entered, seconds since 1970."""
    was_ready: bool = False
    """Whether any run ever finished; stays true until the node's disks are erased."""
    stands: bool = False
    """Whether the last run that wrote its disks finished, so that what it installed is still there."""
    reason: str = ""
    """Of the last change of state, printable."""
    serial: str = ""
    """Of the machine, as its BMC printed it before it was powered on."""
    uuid: str = ""
    """Likewise; identifies the machine where it has no serial number."""
    mac: str = ""
    """Of the port by which the agent reaches the head."""
    token: str = ""
    token_until: float = 0.0
    session: str = ""
    image: str = ""
    """SHA-256 of the image of this run, or of the answers for the distribution's installer."""
    disks: list[dict[str, Any]] = field(default_factory=list)
    """Disks that were approved for the distribution's installer, as they were found."""
    answers: str = ""
    """Random folder that its answers are served in, below the address of the answers' server."""
    confirmed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Serial of a disk to the signatures that were confirmed in this run; for an erasure see erasure.py."""
    held: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Serial of a disk to the signatures that wait for a confirmation."""
    inventory: dict[str, Any] = field(default_factory=dict)
    host_key: str = ""
    phase: str = ""
    percent: int = 0
    media: str = ""
    """Path on our server of the boot medium of this run."""

    def take(self, event: Event) -> None:
        """Let one line of the journal have its effect."""
        if "state" in event:
            self.state, self.since = State(event["state"]), float(event["at"])
            self.reason = str(event.get("reason", ""))
            # what was erased leaves nothing to protect
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
        # another process may write its confirmation when this run has ended and the next has begun
        if "confirm" in event and event["of"] == self.run and self.state in UNDER_WAY:
            self.confirmed = self.confirmed | _signatures(event["confirm"])

    def is_of(self, identity: BmcIdentity) -> bool:
        """Whether the last run worked on the machine that a BMC is of now."""
        if identity.serial is not None:
            return self.serial == identity.serial
        return bool(identity.uuid) and (self.serial, self.uuid) == ("", identity.uuid)

    def lose(self) -> None:
        """A line that cannot be read: it may have ended a run, spent the token, or said that the node was ready."""
        self.was_ready, self.stands = True, False
        self.token, self.confirmed, self.held = "", {}, {}
        self.answers, self.disks = "", []  # it may have given the session out

    def _begin(self, event: Event) -> None:
        """A new run: nothing of an earlier one counts, confirmations least of all."""
        self.run, self.mode = str(event["run"]), str(event["mode"])
        self.token = self.session = self.image = self.host_key = self.phase = self.media = self.answers = ""
        self.percent, self.confirmed, self.held, self.inventory, self.disks = 0, {}, {}, {}, []


def _signatures(found: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    return {disk: tuple(signs) for disk, signs in found.items()}


class Journal:
    """The journal of one node. Safe for the threads of one process; `claim` keeps other processes out."""

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
        """The record as of now, which stays as it is; another process may have confirmed a disk."""
        with self._lock:
            size = self._path.stat().st_size if self._path.exists() else 0
            if size != self._size:
                self._record, self._size = _fold(self._path, self._node)
            return self._record

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Hold the node for this process; InstallError where another one installs it."""
        path = self._path.with_suffix(".lock")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(handle, 200, 0).decode(errors="replace").strip()
                raise InstallError(
                    f"{self._node} is being installed by another process{f' ({holder})' if holder else ''}.",
                    hint="wait for it, or stop it and run again: the installation goes on where it was",
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
        """Enter a state; the line is on disk when this returns. InstallError for a state that may not follow."""
        with self._lock:
            before = self.record.state
            if not may_follow(before, state):
                raise InstallError(f"{self._node} cannot go from {before} to {state}.")
            self._write({"state": state.value, "reason": reason, **data})

    def fail(self, reason: str, only: State | None = None) -> bool:
        """Note a failure, unless nothing is under way any more; whether it was noted.

        + only: noted in this state alone: the agent may have got further in this moment
        """
        with self.changing() as record:
            if not may_follow(record.state, State.FAILED) or only not in (None, record.state):
                return False
            self.move(State.FAILED, reason)
            return True

    def note(self, **data: Any) -> None:  # noqa: ANN401
        """Add what is known without a change of state."""
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
                line = b"\n" + line  # a run was killed within a line
            if os.write(handle, line) < len(line):
                os.ftruncate(handle, size)  # half a line would be taken for damage
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
        fcntl.flock(file, fcntl.LOCK_SH)  # no half of a line that another process is writing
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
