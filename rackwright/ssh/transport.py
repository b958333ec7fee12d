"""paramiko's Transport without polling, and with faster ciphers first.

paramiko wakes up ten times a second on every connection, in up to three places, to check whether it was
closed. With a hundred slow nodes that takes more CPU than all checks together. Here every thread sleeps
until something happens: closing shuts down the socket, which wakes the reader; a thread that waits for
a handshake or a login waits for its event.

AES-GCM comes first among the ciphers: it is one pass in C, where AES-CTR also needs a MAC for each
packet, which paramiko compares byte by byte in Python. Every other algorithm is still offered.

This uses private names of paramiko 3 and 4, so pyproject.toml caps it below 5.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from typing import Any, cast

import paramiko
from paramiko.transport import _active_threads  # type: ignore[attr-defined]

from rackwright.boundary import printable

# paramiko raises what it logs; without a handler, Python would print its tracebacks to stderr.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

_WAKE_SECONDS = 5.0
"""How often an idle connection checks whether a keepalive or new keys are due."""
_BEFORE_BANNER = "Banner: "
"""How paramiko logs a line that arrives before the banner; it does not keep these lines."""
_FIRST = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")


class QuietTransport(paramiko.Transport):
    """A Transport that sleeps until something happens."""

    _active_check_timeout = _WAKE_SECONDS
    _preferred_ciphers = (
        *_FIRST,
        *(name for name in paramiko.Transport._preferred_ciphers if name not in _FIRST),  # type: ignore[attr-defined]
    )

    said = ""
    """Text that the peer sent instead of a banner, made printable."""

    def _log(self, level: int, msg: Any, *args: Any) -> None:  # noqa: ANN401 - paramiko's
        """Also keep the line that sshd sends when it refuses a connection, e.g. `Exceeded MaxStartups`."""
        if isinstance(msg, str) and msg.startswith(_BEFORE_BANNER):
            self.said = printable(msg.removeprefix(_BEFORE_BANNER).strip(), 100)
        super()._log(level, msg, *args)  # type: ignore[misc]

    def start_client(self, event: threading.Event | None = None, timeout: float | None = None) -> None:
        """Negotiate; SSHException if that fails or takes longer than `timeout` seconds."""
        done = event or threading.Event()
        super().start_client(done)
        if event is not None:
            return
        ended = done.wait(timeout)
        if not self.active:
            raise self.get_exception() or paramiko.SSHException("Negotiation failed.")
        if not ended:
            raise paramiko.SSHException(f"key exchange not finished within {timeout:g} s")

    def auth_publickey(
        self, username: str, key: paramiko.PKey, event: threading.Event | None = None
    ) -> list[str]:
        """Log in with a key; AuthenticationException if refused or timed out."""
        done = event or threading.Event()
        super().auth_publickey(username, key, done)
        if event is not None:
            return []
        if not done.wait(self.auth_timeout):
            raise paramiko.AuthenticationException("Authentication timeout.")
        handler: Any = self.auth_handler
        return cast(list[str], handler.wait_for_response(done))  # returns immediately: the event is set

    def stop_thread(self) -> None:
        """End the reader, which sleeps on the socket; only closing the socket would not wake it."""
        self.active = False
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self.sock.shutdown(socket.SHUT_RDWR)
        super().stop_thread()


def is_broken(transport: paramiko.Transport) -> bool:
    """Whether the connection's reader has ended.

    It closes the channels of a broken connection before it marks itself inactive: a thread woken by that
    which trusts `is_active` alone would take a broken connection for a killed command.
    """
    return not transport.is_active() or transport not in _active_threads


def start(channel: Any, command: str, timeout: float) -> None:  # noqa: ANN401 - paramiko's own parts
    """Start a command; SSHException if the peer refuses or does not answer in time.

    `Channel.exec_command` waits for the answer forever.
    """
    message = paramiko.Message()
    message.add_byte(bytes([98]))  # SSH_MSG_CHANNEL_REQUEST, RFC 4254
    message.add_int(channel.remote_chanid)
    message.add_string("exec")
    message.add_boolean(True)
    message.add_string(command)
    channel._event_pending()
    channel.get_transport()._send_user_message(message)
    if not channel.event.wait(timeout):
        raise paramiko.SSHException(f"the command did not start within {timeout:g} s")
    channel._wait_for_event()  # returns immediately: answered, or the connection is gone


def send(channel: Any, data: bytes) -> int:  # noqa: ANN401
    """Send as much of `data` as the peer's window takes; OSError if the channel is closed.

    `Channel.send` unlocks the channel before it sends its message, so the reader may answer the peer's CLOSE
    in between. A message after our CLOSE names a channel that no longer exists, and sshd then ends the whole
    connection ("packet referred to nonexistent channel").
    """
    if not channel.get_transport().clear_to_send.is_set():
        return int(channel.send(data))  # during a key exchange the reader must not wait for us
    with channel.lock:
        if channel.closed:
            raise OSError("the channel is closed")
        size = int(channel._wait_for_send_window(len(data)))
        if size:
            message = paramiko.Message()
            message.add_byte(bytes([94]))  # SSH_MSG_CHANNEL_DATA, RFC 4254
            message.add_int(channel.remote_chanid)
            message.add_string(data[:size])
            channel.get_transport()._send_user_message(message)
    return size


def end_input(channel: Any) -> None:  # noqa: ANN401
    """Send EOF, unless the channel is already closed; see `send`."""
    if not channel.get_transport().clear_to_send.is_set():
        channel.shutdown_write()
        return
    with channel.lock:
        message = None if channel.closed else channel._send_eof()
        if message is not None:
            channel.get_transport()._send_user_message(message)
