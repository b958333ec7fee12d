"""JSON over a UNIX socket of qemu: its monitor (QMP), and the guest agent inside a virtual machine.

Both send one JSON object a line (qemu's documentation, "QMP protocol specification" and "QEMU Guest Agent
Protocol Reference", read 2026-11-23). The agent has no greeting, and may still hold half a request of a
client that was killed: `guest-sync-delimited` begins each connection.
"""

import base64
import json
import os
import random
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rackwright.command import CommandResult
from rackwright.errors import LabError

_ANSWER_MAX = 64 << 20
_POLL_SECONDS = 0.1
_DELIMITER = b"\xff"


class NotAnswering(LabError):  # noqa: N818 - reads as a sentence
    """The machine, or its guest agent, does not answer."""


class QemuSocket:
    """One connection; every answer is bounded in time and size."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
        self._deadline = time.monotonic() + timeout
        self._pending = b""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(timeout)
            _connect(self._socket, path)
        except OSError as error:
            self._socket.close()
            raise NotAnswering(f"{path} does not answer: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, request: dict[str, Any], prefix: bytes = b"") -> None:
        """Send one request and wait for nothing."""
        try:
            self._socket.sendall(prefix + json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise NotAnswering(f"{self._path} does not answer: {error}") from None

    def receive(self) -> dict[str, Any]:
        """The next object."""
        return dict(json.loads(self._line()))

    def ask(self, execute: str, **arguments: Any) -> Any:  # noqa: ANN401 - each command has its own answer
        """One command's answer; LabError with qemu's own text when it is refused."""
        self.send({"execute": execute, "arguments": arguments})
        while True:
            answer = self.receive()
            if "error" in answer:
                raise LabError(f"{execute}: {answer['error'].get('desc', answer['error'])}")
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
                return dict(json.loads(text))

    def _line(self) -> bytes:
        while b"\n" not in self._pending:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise NotAnswering(f"{self._path} does not answer in time")
            self._socket.settimeout(left)
            try:
                chunk = self._socket.recv(1 << 16)
            except OSError as error:
                raise NotAnswering(f"{self._path} does not answer: {error}") from None
            if not chunk or len(self._pending) + len(chunk) > _ANSWER_MAX:
                raise NotAnswering(
                    f"{self._path} was closed" if not chunk else f"{self._path}: answer too long"
                )
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line


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
    connection.receive()  # the greeting
    connection.ask("qmp_capabilities")
    return connection


def agent(path: Path, timeout: float) -> QemuSocket:
    """A connection to the guest agent that is ready for commands."""
    connection = QemuSocket(path, timeout)
    try:
        connection.synchronise()
    except BaseException:
        connection._socket.close()
        raise
    return connection


def guest_exec(path: Path, argv: Sequence[str], environment: Sequence[str], timeout: float) -> CommandResult:
    """Run a program as root in the machine; NotAnswering when it does not end in time."""
    with agent(path, timeout) as connection:
        pid = connection.ask(
            "guest-exec",
            path=argv[0],
            arg=list(argv[1:]),
            env=list(environment),
            **{"capture-output": True},
        )["pid"]
        while not (state := connection.ask("guest-exec-status", pid=pid))["exited"]:
            time.sleep(_POLL_SECONDS)
    code = state["exitcode"] if "exitcode" in state else 128 + int(state.get("signal", 0))
    out, err = (
        base64.b64decode(state.get(f"{name}-data", "")).decode(errors="replace") for name in ("out", "err")
    )
    return CommandResult(" ".join(argv), code, out, err)
