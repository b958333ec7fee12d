"""Streams large input and output of one command, which `run` would hold in memory."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import BinaryIO

import paramiko

from rackwright.boundary import last_line
from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.ssh.command import OPEN_SECONDS
from rackwright.ssh.connection import transport_of
from rackwright.ssh.hostkeys import in_words
from rackwright.ssh.login_shell import MARK, command_line, without_greeting
from rackwright.ssh.transport import end_input, send, start

_CHUNK = 32 * 1024
_STALLED_SECONDS = 300
"""How long a node may take to read more input or print more output."""
_GREETING_MAX = 64 * 1024
_SAID_MAX = 64 * 1024


def feed(
    client: paramiko.SSHClient, command: str, chunks: Iterable[bytes], *, sudo: bool, timeout: float
) -> CommandResult:
    """Run a shell command with this data on stdin; its output must be short.

    `timeout` covers what the command does after it has read everything. ConnectionFailed if the connection is lost
    or the node reads nothing for five minutes.
    """
    try:
        with _started(client, command, sudo=sudo) as channel:
            _send_all(channel, chunks)
            channel.settimeout(timeout)
            out = _read_all(channel)
            err = b""
            while len(err) < _SAID_MAX and (more := channel.recv_stderr(_CHUNK)):
                err += more
            status = channel.recv_exit_status()
    except (paramiko.SSHException, OSError, EOFError) as error:
        raise _lost(client, error) from error
    return CommandResult(
        command, status, without_greeting(out).decode(errors="replace"), err.decode(errors="replace")
    )


def collect(client: paramiko.SSHClient, command: str, into: BinaryIO, *, sudo: bool, limit: int) -> None:
    """Run a shell command and write its stdout to a file; ConnectionFailed if it fails or prints over `limit` bytes."""
    try:
        with _started(client, command, sudo=sudo) as channel:
            end_input(channel)
            rest, size = _past_greeting(channel), 0
            while rest:
                size += len(rest)
                if size > limit:
                    raise EOFError(f"more than {limit} bytes of output")
                into.write(rest)
                rest = channel.recv(_CHUNK)
            reply = channel.recv_stderr(_SAID_MAX).decode(errors="replace")
            if (status := channel.recv_exit_status()) != 0:
                raise EOFError(f"it exited {status}: {last_line('', reply)}")
    except (paramiko.SSHException, OSError, EOFError) as error:
        raise _lost(client, error) from error


def _started(client: paramiko.SSHClient, command: str, *, sudo: bool) -> paramiko.Channel:
    channel = transport_of(client).open_session(timeout=OPEN_SECONDS)
    channel.settimeout(_STALLED_SECONDS)
    start(channel, command_line(command, sudo=sudo), OPEN_SECONDS)
    return channel


def _send_all(channel: paramiko.Channel, chunks: Iterable[bytes]) -> None:
    """Send until everything is sent, or the command exits without reading it."""
    for chunk in chunks:
        left = memoryview(chunk)
        while left:
            if channel.exit_status_ready() or channel.closed:
                return
            left = left[_send_some(channel, bytes(left[:_CHUNK])) :]
    end_input(channel)


def _send_some(channel: paramiko.Channel, data: bytes) -> int:
    """Wait for window space without holding the channel's lock, which its reader needs to see the command exit."""
    deadline = time.monotonic() + _STALLED_SECONDS
    while not channel.send_ready() and not channel.exit_status_ready():
        if time.monotonic() > deadline:
            raise EOFError(f"the node read nothing for {_STALLED_SECONDS} s")
        time.sleep(0.002)
    try:
        return len(data) if channel.exit_status_ready() else send(channel, data)
    except OSError:  # the command has exited; its exit status explains why
        if channel.closed or channel.exit_status_ready():
            return len(data)
        raise


def _read_all(channel: paramiko.Channel) -> bytes:
    out = b""
    while more := channel.recv(_CHUNK):
        out = (out + more)[:_SAID_MAX]
    return out


def _past_greeting(channel: paramiko.Channel) -> bytes:
    mark, read = f"{MARK}\n".encode(), b""
    while mark not in read:
        more = channel.recv(_CHUNK)
        if not more or len(read) > _GREETING_MAX:
            reply = channel.recv_stderr(_SAID_MAX).decode(errors="replace")
            raise EOFError(f"the command did not start: {last_line('', reply)}")
        read += more
    return read.partition(mark)[2] or channel.recv(_CHUNK)


def _lost(client: paramiko.SSHClient, error: Exception) -> ConnectionFailed:
    label = getattr(client, "label", "the node")
    return ConnectionFailed(
        f"The transfer with {label} did not complete: {in_words(error)}.",
        hint="run the command again: a restore continues from the node's current state",
    )
