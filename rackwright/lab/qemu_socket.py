"""JSON over a UNIX socket of qemu: its monitor (QMP), and the guest agent inside a virtual machine.

Both send one JSON object a line (qemu's documentation, "QMP protocol specification" and "QEMU Guest Agent
Protocol Reference", read 2026-11-23). The agent has no greeting, and may still hold half a request of a
client that was killed: `guest-sync-delimited` begins each connection.

The agent is a program of the node, so what it sends passes rackwright.boundary.
"""

import base64
import binascii
import json
import os
import random
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from rackwright.boundary import Refused, printable, read_json
from rackwright.command import CommandResult
from rackwright.errors import LabError

_ANSWER_MAX = 64 << 20
"""The agent keeps 16 MiB of each of a program's two outputs (GUEST_EXEC_MAX_OUTPUT) and sends them as base64."""
_POLL_SECONDS = 0.1
_HELD_SECONDS = 1.0
"""How long a program keeps the line: most are over by then, and each connection costs the agent a tenth of one."""
_KILL_SECONDS = 10.0
_STATUS_SECONDS = 10.0
"""Of the last question too: a program that runs too long is not an agent that is silent."""
_DELIMITER = b"\xff"

T = TypeVar("T")


class NotAnswering(LabError):  # noqa: N818 - reads as a sentence
    """The machine, or its guest agent, does not answer."""


class StillRunning(NotAnswering):
    """A program in the machine did not end in time."""


class QemuSocket:
    """One connection; every answer is bounded in time and size."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
        self._deadline = time.monotonic() + timeout
        self._pending = bytearray()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(timeout)
            self._queue_up()
        except OSError as error:
            self._socket.close()
            raise NotAnswering(f"{path} does not answer: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def _queue_up(self) -> None:
        """Connect; qemu serves one client, lets two wait and turns others away for the moment."""
        while True:
            try:
                return _connect(self._socket, self._path)
            except BlockingIOError:
                if time.monotonic() > self._deadline:
                    raise
                time.sleep(_POLL_SECONDS)

    def send(self, request: dict[str, Any], prefix: bytes = b"") -> None:
        """Send one request and wait for nothing."""
        try:
            self._socket.sendall(prefix + json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise NotAnswering(f"{self._path} does not answer: {error}") from None

    def receive(self) -> dict[str, Any]:
        """The next object."""
        return self._object(self._line())

    def ask(self, execute: str, /, **arguments: Any) -> Any:  # noqa: ANN401 - each command has its own answer
        """One command's answer; LabError with qemu's own text when it is refused."""
        self.send({"execute": execute, "arguments": arguments})
        while True:
            answer = self.receive()
            if "error" in answer:
                error = answer["error"]
                text = error.get("desc", error) if isinstance(error, dict) else error
                raise LabError(f"{execute}: {printable(str(text), 500)}")
            if "return" in answer:
                return answer["return"]

    def synchronise(self) -> None:
        """Drop what an earlier client of the guest agent left behind."""
        number = random.randrange(1 << 31)
        request = {"execute": "guest-sync-delimited", "arguments": {"id": number}}
        self.send(request, prefix=_DELIMITER)
        while self.receive_after_delimiter().get("return") != number:
            pass

    def receive_after_delimiter(self) -> dict[str, Any]:
        """The next object whose line begins with the agent's delimiter."""
        while True:
            _, delimiter, text = self._line().rpartition(_DELIMITER)
            if delimiter:
                return self._object(text)

    def allow(self, seconds: float) -> None:
        """Wait for further answers at least so long from now on."""
        self._deadline = max(self._deadline, time.monotonic() + seconds)

    def close(self) -> None:
        """Leave the line to the next client: qemu serves one at a time."""
        self._socket.close()

    def _object(self, line: bytes) -> dict[str, Any]:
        try:
            answer = read_json(line, _ANSWER_MAX)
        except Refused as error:
            raise NotAnswering(f"{self._path}: an answer was refused: {error}") from None
        if not isinstance(answer, dict):
            raise NotAnswering(f"{self._path}: an answer was refused: it is not an object")
        return answer

    def _line(self) -> bytes:
        searched = 0
        while (end := self._pending.find(b"\n", searched)) < 0:
            searched = len(self._pending)
            chunk = self._chunk()
            if searched + len(chunk) > _ANSWER_MAX:
                raise NotAnswering(f"{self._path}: an answer was refused: it is longer than 64 MiB")
            self._pending += chunk
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        return line

    def _chunk(self) -> bytes:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise NotAnswering(f"{self._path} does not answer in time")
        self._socket.settimeout(left)
        try:
            chunk = self._socket.recv(1 << 16)
        except OSError as error:
            raise NotAnswering(f"{self._path} does not answer: {error}") from None
        if not chunk:
            raise NotAnswering(f"{self._path} was closed")
        return chunk


def _connect(unconnected: socket.socket, path: Path) -> None:
    """By way of its folder: the path of a node's state can be longer than a socket's address may be."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        unconnected.connect(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def console(path: Path) -> socket.socket:
    """The serial line of a machine."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _connect(line, path)
    except OSError as error:
        line.close()
        raise NotAnswering(f"{path} does not answer: {error}") from None
    return line


def monitor(path: Path, timeout: float = 30) -> QemuSocket:
    """A connection to qemu's monitor that is ready for commands."""
    connection = QemuSocket(path, timeout)
    try:
        connection.receive()  # the greeting
        connection.ask("qmp_capabilities")
    except BaseException:
        connection.close()
        raise
    return connection


def agent(path: Path, timeout: float) -> QemuSocket:
    """A connection to the guest agent that is ready for commands."""
    connection = QemuSocket(path, timeout)
    try:
        connection.synchronise()
    except BaseException:
        connection.close()
        raise
    return connection


def guest_exec(path: Path, argv: Sequence[str], environment: Sequence[str], timeout: float) -> CommandResult:
    """Run a program as root in the machine; StillRunning, and its end, when it takes longer.

    The line is left to others while the program runs: a long one must not make the machine look dead.
    """
    began = time.monotonic()
    arguments = {"path": argv[0], "arg": list(argv[1:]), "env": list(environment), "capture-output": True}
    with agent(path, timeout) as connection:
        pid = _member(connection.ask("guest-exec", **arguments), "pid", int)
        connection.allow(_HELD_SECONDS + _STATUS_SECONDS)
        state = connection.ask("guest-exec-status", pid=pid)
        while not _member(state, "exited", bool) and time.monotonic() < began + min(timeout, _HELD_SECONDS):
            time.sleep(_POLL_SECONDS)
            state = connection.ask("guest-exec-status", pid=pid)
    while not _member(state, "exited", bool):
        left = began + timeout - time.monotonic()
        if left <= 0:
            _end(path, pid)
            raise StillRunning(f"it took more than {timeout:g} s")
        time.sleep(min(_POLL_SECONDS, left))
        state = _ask_agent(path, max(left, _STATUS_SECONDS), "guest-exec-status", pid=pid)
    return _result(argv, state)


def _end(path: Path, pid: int) -> None:
    with suppress(LabError):
        kill = {"path": "/bin/kill", "arg": ["-KILL", str(pid)]}
        _ask_agent(path, _KILL_SECONDS, "guest-exec", **kill)


def _ask_agent(path: Path, timeout: float, execute: str, /, **arguments: object) -> object:
    with agent(path, timeout) as connection:
        answer: object = connection.ask(execute, **arguments)
        return answer


def _result(argv: Sequence[str], state: object) -> CommandResult:
    out, err = (_output(state, f"{name}-data") for name in ("out", "err"))
    if any(_member(state, f"{name}-truncated", bool, False) for name in ("out", "err")):
        raise LabError(
            "it printed more than the 16 MiB that the guest agent keeps", hint="write it to a file"
        )
    signal = _member(state, "signal", int, 0)
    code = 128 + signal if signal else _member(state, "exitcode", int)
    return CommandResult(" ".join(argv), code, out, err)


def _output(state: object, name: str) -> str:
    try:
        return base64.b64decode(_member(state, name, str, ""), validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        raise NotAnswering(f"the guest agent's {name} is not base64") from None


def _member(answer: object, name: str, kind: type[T], default: T | None = None) -> T:
    value = answer.get(name, default) if isinstance(answer, dict) else None
    if type(value) is not kind:
        raise NotAnswering(f"the guest agent answered without {name}: {printable(str(answer), 200)}")
    return value
