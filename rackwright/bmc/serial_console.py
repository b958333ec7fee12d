"""A node's serial console as a channel for programs: the same one that `bmc console` opens in a terminal."""

from __future__ import annotations

import errno
import os
import pty
import queue
import select
import shlex
import socket
import subprocess
import tempfile
import threading
import time
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Protocol

from rackwright.bmc.interface import BmcClient
from rackwright.bmc.open import Open
from rackwright.boundary import last_line
from rackwright.errors import BmcError, LabError
from rackwright.model.bmc import BmcProtocol
from rackwright.model.cluster import Cluster, Node
from rackwright.secrets.secret import Secret
from rackwright.secrets.store import store_of

_CHUNK = 1 << 16
_OPEN_SECONDS = 60.0
_SSH_OPEN_SECONDS = 10.0
"""An ssh that was refused has exited by then; if it only shows nothing, the console is silent."""
_END_SECONDS = 10.0
_SOL = ("sol", "activate")
_SOL_IS_OPEN = b"SOL Session operational"
_SSH_OPTIONS = (
    *("-o", "StrictHostKeyChecking=yes", "-o", "NumberOfPasswordPrompts=1"),
    *("-o", "PreferredAuthentications=password,keyboard-interactive"),
    *("-o", "ConnectTimeout=30", "-o", "ServerAliveInterval=30", "-e", "none"),
)
"""The BMC's password is not sent to a host with an unknown key; no typed key is an escape."""
_ASK = "#!/bin/sh\nexec cat {}\n"


class Channel(Protocol):
    """One open serial console; for one thread. Every method raises BmcError once the console has ended."""

    def read(self, seconds: float) -> bytes:
        """New output; empty if there was none within this time."""

    def write(self, keys: bytes) -> None:
        """Type."""

    def close(self) -> None:
        """Release the console for others. Never raises."""


class SocketChannel:
    """The serial line of one of the lab's virtual machines.

    A thread drains it: qemu buffers only about 300 characters for a slow reader, and drops the rest.
    """

    def __init__(self, node: str, line: socket.socket) -> None:
        self._node, self._line = node, line
        self._arrived: queue.SimpleQueue[bytes | OSError] = queue.SimpleQueue()
        line.settimeout(None)
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        data: bytes | OSError = b"?"
        while isinstance(data, bytes) and data:
            try:
                data = self._line.recv(_CHUNK)
            except OSError as error:
                data = error
            self._arrived.put(data)

    def read(self, seconds: float) -> bytes:
        """What has arrived."""
        try:
            data = self._arrived.get(timeout=seconds)
        except queue.Empty:
            return b""
        if isinstance(data, bytes) and data:
            return data
        self._arrived.put(data)  # so that the next read sees it too
        raise _ended(self._node, "the machine was powered off" if data == b"" else str(data))

    def write(self, keys: bytes) -> None:
        """Type."""
        try:
            self._line.sendall(keys)
        except OSError as error:
            raise _ended(self._node, str(error.strerror)) from None

    def close(self) -> None:
        """Leave the line."""
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)  # only closing would not end the thread
        self._line.close()


class ProgramChannel:
    """A program with the console on its terminal: ipmitool's Serial over LAN, or ssh to the BMC."""

    def __init__(self, node: str, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self._node, self._argv, self._environment = node, list(argv), dict(environment)
        self._said, self._session = b"", False
        self._terminal, theirs = pty.openpty()
        try:
            tty.setraw(theirs)
            self._process = subprocess.Popen(
                self._argv,
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                env=self._environment,
                start_new_session=True,
            )
        except FileNotFoundError:
            os.close(self._terminal)
            raise BmcError(f"The program {self._argv[0]} is not installed.") from None
        finally:
            os.close(theirs)

    def await_open(self) -> None:
        """Wait until the program has the console; BmcError if it exits instead."""
        by_ipmi = tuple(self._argv[-2:]) == _SOL
        deadline = time.monotonic() + (_OPEN_SECONDS if by_ipmi else _SSH_OPEN_SECONDS)
        while (left := deadline - time.monotonic()) > 0:
            self.read(left)
            if by_ipmi and _SOL_IS_OPEN in self._said:
                self._session = True
                return
        if by_ipmi:
            raise _ended(self._node, f"ipmitool did not open it within {_OPEN_SECONDS:g} s")

    def read(self, seconds: float) -> bytes:
        """What has arrived."""
        readable, _, _ = select.select([self._terminal], [], [], seconds)
        if not readable:
            return b""
        try:
            data = os.read(self._terminal, _CHUNK)
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal whose program has exited
                raise
            data = b""
        if not data:
            raise _ended(
                self._node, last_line(self._said.decode(errors="replace"), "") or "its program exited"
            )
        self._said = (self._said + data)[-4096:]
        return data

    def write(self, keys: bytes) -> None:
        """Type."""
        try:
            while keys:
                keys = keys[os.write(self._terminal, keys) :]
        except OSError as error:
            raise _ended(self._node, str(error.strerror)) from None

    def close(self) -> None:
        """End the program, and a session on the BMC that it opened, which would block the next one."""
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._terminal)
        if self._session:  # never another user's session, which this would end too
            with suppress(subprocess.TimeoutExpired, OSError):
                subprocess.run(
                    [*self._argv[:-1], "deactivate"],
                    check=False,
                    env=self._environment,
                    timeout=_END_SECONDS,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                )


class SshChannel(ProgramChannel):
    """ssh to a BMC; it reads the password from a private folder."""

    def __init__(self, node: str, argv: Sequence[str], password: Secret) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rackwright-console-")  # for this user alone
        try:
            environment = _environment() | _asking(Path(self._folder.name), password)
            super().__init__(node, [argv[0], *_SSH_OPTIONS, *argv[1:]], environment)
        except BaseException:
            self._folder.cleanup()
            raise

    def close(self) -> None:
        """End ssh, and remove the password."""
        super().close()
        self._folder.cleanup()


@contextmanager
def console_of(cluster: Cluster, node: Node, open_bmc: Open) -> Iterator[Channel]:
    """The console of a node through its BMC; for a running lab rack, its machine's serial line.

    BmcError if the BMC offers none, or another session uses it.
    """
    if (line := _of_lab(cluster, node)) is not None:
        with closing(line):
            yield line
        return
    with closing(open_bmc(node)) as client, closing(_program(cluster, node, client)) as channel:
        channel.await_open()
        yield channel


def _program(cluster: Cluster, node: Node, client: BmcClient) -> ProgramChannel:
    command = client.console_command()
    if command is None or node.bmc is None:
        raise BmcError(
            f"The BMC of {node.name} offers no serial console over SSH.",
            hint="enable it on the BMC, or declare `protocol: ipmi` for Serial over LAN",
        )
    if command[0] != "ssh":
        return ProgramChannel(node.name, command, _environment() | {"HOME": "/nonexistent"})
    return SshChannel(node.name, command, store_of(cluster).get(node.bmc.password))


def _of_lab(cluster: Cluster, node: Node) -> Channel | None:
    if node.lab is None or node.bmc is None or node.bmc.protocol is BmcProtocol.IPMI:
        return None  # the lab's BMCs use Redfish, and offer no console
    from rackwright.lab import names, netns, qemu, qemu_socket  # only the lab needs it

    if not netns.rack_is_up(cluster.name):
        return None
    try:
        line = qemu_socket.console(names.node_state(cluster.name, node.name) / qemu.SERIAL)
    except LabError as error:
        raise _ended(node.name, error.message.rstrip(".")) from None
    return SocketChannel(node.name, line)


def _environment() -> dict[str, str]:
    kept = ("PATH", "HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"LC_ALL": "C", "TERM": "vt100"}


def _asking(folder: Path, password: Secret) -> dict[str, str]:
    """Make ssh ask a program for the password, which reads it from a file (ssh(1), SSH_ASKPASS; OpenSSH 8.4)."""
    for name, text, mode in (("password", password.reveal() + "\n", 0o600), ("ask", "", 0o700)):
        content = text or _ASK.format(shlex.quote(str(folder / "password")))
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w") as file:
            file.write(content)
    return {"SSH_ASKPASS": str(folder / "ask"), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ""}


def _ended(node: str, why: str) -> BmcError:
    return BmcError(
        f"The serial console of {node} ended: {why}.",
        hint="only one session can use it, and ssh must know the BMC's host key: open it once with `rackwright bmc console`",
    )
