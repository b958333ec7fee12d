"""A machine's serial line on a terminal: bytes both ways, and the ways out."""

from __future__ import annotations

import os
import pty
import select
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rackwright.errors import LabError
from rackwright.lab import serial_line
from rackwright.lab.serial_line import attach_to

SECONDS = 20.0
CODE = """\
import sys
from pathlib import Path
from rackwright.lab import serial_line
serial_line._SILENCE_SECONDS = 0.5
sys.exit(serial_line.attach_to(Path(sys.argv[1])))
"""
CONNECTED = b"connected to the serial line; Ctrl-] leaves it\r\n"


class Machine:
    """The machine's end of the line, and a user at a terminal."""

    def __init__(self, line: socket.socket, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.line, self.process, self.terminal = line, process, terminal
        line.settimeout(SECONDS)

    def shown(self, wanted: bytes) -> bytes:
        """What the terminal shows until it has shown this."""
        text, deadline = b"", time.monotonic() + SECONDS
        while wanted not in text:
            readable, _, _ = select.select([self.terminal], [], [], max(0.0, deadline - time.monotonic()))
            assert readable, text
            text += os.read(self.terminal, 4096)
        return text

    def type(self, text: bytes) -> None:
        os.write(self.terminal, text)

    def ended(self) -> int:
        return self.process.wait(SECONDS)


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen(1)
        server.settimeout(SECONDS)
        yield server


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine whose serial line a user has just opened."""
    ours, theirs = pty.openpty()
    with listening(tmp_path / "serial") as server:
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, str(tmp_path / "serial")], stdin=theirs, stdout=theirs, stderr=theirs
        )
        try:
            line, _ = server.accept()
            with line:
                one = Machine(line, process, ours)
                one.shown(CONNECTED.strip())
                _wait_raw(theirs)
                yield one
        finally:
            process.kill()
            process.wait()
            with suppress(OSError):
                os.close(ours)
            os.close(theirs)


def _wait_raw(terminal: int) -> None:
    deadline = time.monotonic() + SECONDS
    while termios.tcgetattr(terminal)[3] & termios.ICANON:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_bytes_go_both_ways_unchanged_and_ctrl_c_is_the_machines(machine: Machine):
    machine.type(b"ls\r\x03\x00\x1b[A")
    assert machine.line.recv(100) == b"ls\r\x03\x00\x1b[A"
    machine.line.sendall(b"root@node1:~# \x1b[1mls\x1b[0m\r\n")
    machine.shown(b"root@node1:~# \x1b[1mls\x1b[0m\r\n")
    assert machine.process.poll() is None


def test_ctrl_right_bracket_leaves_after_what_was_typed_before(machine: Machine):
    machine.type(b"sync\r\x1dnot this")
    assert machine.ended() == 0
    assert machine.line.recv(100) == b"sync\r"
    assert machine.line.recv(100) == b""


def test_the_terminal_is_as_before(machine: Machine):
    machine.type(b"\x1d")
    assert machine.ended() == 0
    attributes = termios.tcgetattr(machine.terminal)
    assert attributes[3] & termios.ICANON
    assert attributes[3] & termios.ECHO


@pytest.mark.parametrize("reset", [False, True])
def test_a_machine_that_ends_ends_the_session(machine: Machine, reset: bool):
    if reset:  # as where qemu is killed with what the user typed still unread
        machine.type(b"x" * 100)
        select.select([machine.line], [], [], SECONDS)
    machine.line.close()
    assert machine.ended() == 0


def test_a_terminal_that_fails_is_the_end_of_the_input(monkeypatch: pytest.MonkeyPatch):
    terminal, other = pty.openpty()
    os.close(other)
    with pytest.raises(OSError, match="Input/output error"):
        os.read(terminal, 1)
    monkeypatch.setattr(serial_line, "_SILENCE_SECONDS", 0.1)
    near, far = socket.socketpair()
    with near, far:
        assert serial_line._carry(terminal, near.fileno()) == 0
    os.close(terminal)


def test_a_machine_that_ends_while_one_types_ends_the_session():
    near, far = socket.socketpair()
    typed, typing = os.pipe()
    with near:
        far.shutdown(socket.SHUT_RD)  # a write to it fails, and it has said nothing yet
        os.write(typing, b"ls\r")
        assert serial_line._carry(typed, near.fileno()) == 0
    far.close()
    os.close(typed)
    os.close(typing)


def test_the_end_of_a_scripts_input_waits_for_what_it_caused(tmp_path: Path):
    with (
        listening(tmp_path / "serial") as server,
        subprocess.Popen(
            [sys.executable, "-c", CODE, str(tmp_path / "serial")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        line, _ = server.accept()
        assert process.stdin is not None
        process.stdin.write(b"hostname\n")
        process.stdin.close()
        process.stdin = None
        with line:
            line.settimeout(SECONDS)
            assert line.recv(100) == b"hostname\n"
            line.sendall(b"node1\r\n")
            out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, err) == (0, b"node1\r\n", CONNECTED)


def test_a_machine_without_a_line_is_an_error(tmp_path: Path):
    with pytest.raises(LabError) as caught:
        attach_to(tmp_path / "serial")
    assert caught.value.message == f"{tmp_path}/serial does not answer: [Errno 2] No such file or directory"
