"""Runs one command over a connection, with limits on time and output."""

from __future__ import annotations

import threading
import time

import paramiko

from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.ssh.connection import transport_of
from rackwright.ssh.hostkeys import in_words
from rackwright.ssh.login_shell import MARK, command_line, without_greeting
from rackwright.ssh.transport import end_input, is_broken, send, start

OUTPUT_MAX_BYTES = 16 * 2**20
TIMED_OUT = 124
"""Exit status of a command that timed out."""
TOO_MUCH_OUTPUT = 125
"""Exit status of a command that printed more than OUTPUT_MAX_BYTES."""
KILLED = 128
"""Exit status of a command killed by a signal (paramiko does not report which)."""
OPEN_SECONDS = 60
"""If a command does not start within this time, the connection counts as lost."""
PATIENCE_SECONDS = 10
"""A command with a shorter timeout than this only times out; with a longer one, the connection counts as lost."""

_CHUNK = 32 * 1024
_LINGER_SECONDS = 1.0


def run(
    client: paramiko.SSHClient,
    command: str,
    *,
    sudo: bool,
    stdin: str | bytes | None,
    timeout: float,
    limit: int = OUTPUT_MAX_BYTES,
    as_it_is: bool = False,
) -> CommandResult:
    """Run a shell command to completion and return its output.

    `sudo` runs it as root through `sudo -n`; `as_it_is` sends it unchanged, for a key with a forced command.
    After `timeout` seconds the channel is closed and the exit status is 124 (processes that the command started are
    not killed: wrap a command that may hang in timeout(1)). More than `limit` bytes of output and errors close the
    channel with status 125, so that truncated output is never mistaken for complete. Raises ConnectionFailed if the
    connection is lost, or if the command does not start within ten seconds or more.
    """
    line = command if as_it_is else command_line(command, sudo=sudo)
    if not as_it_is:
        limit += len(MARK) + 1
    data = stdin.encode() if isinstance(stdin, str) else stdin or b""
    deadline = time.monotonic() + timeout
    try:
        channel = transport_of(client).open_session(timeout=min(max(timeout, 0.001), OPEN_SECONDS))
        try:
            channel.settimeout(max(timeout, 0.001))
            start(channel, line, min(max(timeout, 0.001), OPEN_SECONDS))
            return _converse(channel, command, data, deadline, timeout, limit)
        finally:
            channel.close()
    except (paramiko.SSHException, OSError, EOFError) as error:
        transport = client.get_transport()
        if (
            timeout < PATIENCE_SECONDS
            and time.monotonic() >= deadline
            and transport
            and transport.is_active()
        ):
            return _result(command, TIMED_OUT, b"", f"not started within {timeout:g} s\n".encode())
        label = getattr(client, "label", "the node")
        raise ConnectionFailed(
            f"Lost the connection to {label} while running `{command[:80]}`: {in_words(error)}.",
            hint="run the command again: rackwright continues from the node's current state",
        ) from error


def _converse(
    channel: paramiko.Channel, command: str, stdin: bytes, deadline: float, timeout: float, limit: int
) -> CommandResult:
    """Feed stdin and read both outputs in one loop, so that neither side blocks the other."""
    arrived = threading.Event()
    channel.in_buffer.set_event(arrived)
    channel.in_stderr_buffer.set_event(arrived)
    out, err = bytearray(), bytearray()
    to_send = memoryview(stdin)
    sending = True
    quiet_since = time.monotonic()
    exited: float | None = None
    while True:
        if _drain(channel, out, err, limit):
            quiet_since = time.monotonic()
            if len(out) + len(err) > limit:
                return _too_much(command, out, limit)
            if quiet_since < deadline:
                continue  # check again before waiting: draining may have cleared the event
        now = time.monotonic()
        if sending:
            to_send, sending = _feed(channel, to_send)
        if channel.exit_status_ready():
            # The last output may arrive after the exit status, and a daemon left behind keeps stdout open.
            exited = exited or now
            lingered = now - max(quiet_since, exited) > _LINGER_SECONDS
            if channel.eof_received or channel.closed or lingered:
                break
        left = (max(deadline, exited + 2 * _LINGER_SECONDS) if exited else deadline) - now
        if left <= 0:
            err += f"not finished within {timeout:g} s\n".encode()
            return _result(command, TIMED_OUT, out, err)
        arrived.wait(min(left, 0.01 if to_send else _LINGER_SECONDS))
        if arrived.is_set() and channel.eof_received:
            channel.status_event.wait(min(max(deadline - time.monotonic(), 0), 0.1))
    _drain(channel, out, err, limit)
    if len(out) + len(err) > limit:
        return _too_much(command, out, limit)
    status = channel.recv_exit_status()
    if status < 0:  # no exit status: the connection broke, or a signal killed the command
        _raise_if_lost(channel)
        return _result(command, KILLED, out, err + b"the command was killed by a signal\n")
    return _result(command, status, out, err)


def _raise_if_lost(channel: paramiko.Channel) -> None:
    transport = channel.get_transport()
    if is_broken(transport):
        raise transport.get_exception() or EOFError("the connection was closed")


def _feed(channel: paramiko.Channel, to_send: memoryview) -> tuple[memoryview, bool]:
    """Send as much as the peer's window takes; close our end after the last byte."""
    try:
        while to_send and channel.send_ready():
            to_send = to_send[send(channel, bytes(to_send[:_CHUNK])) :]
        if to_send:
            return to_send, True
        end_input(channel)
    except OSError:  # the command exited without reading all of it, which is allowed
        pass
    return memoryview(b""), False


def _drain(channel: paramiko.Channel, out: bytearray, err: bytearray, limit: int) -> bool:
    got = False
    while channel.recv_ready() and len(out) + len(err) <= limit:
        out += channel.recv(_CHUNK)
        got = True
    while channel.recv_stderr_ready() and len(out) + len(err) <= limit:
        err += channel.recv_stderr(_CHUNK)
        got = True
    return got


def _too_much(command: str, out: bytearray, limit: int) -> CommandResult:
    size = f"{limit >> 20} MiB" if limit >= 2**20 else f"{limit >> 10} KiB"
    why = f"more than {size} of output: stopped reading\n"
    return _result(command, TOO_MUCH_OUTPUT, out[:limit], why.encode())


def _result(command: str, status: int, out: bytes | bytearray, err: bytes | bytearray) -> CommandResult:
    text = without_greeting(bytes(out)).decode(errors="replace")
    return CommandResult(command, status, text, err.decode(errors="replace"))
