"""A head without ssh: the program that holds the lock runs here, as the same processes it would be there."""

from __future__ import annotations

import os
import socket
import subprocess
import threading

from rackwright.errors import ConnectionFailed


class Line:
    """One connection: the part of a client and of a channel that the lock uses."""

    def __init__(self, command: str) -> None:
        self.socket, other = socket.socketpair()
        with other:
            self.process = subprocess.Popen(
                ["sh", "-c", command], stdin=other, stdout=other, stderr=subprocess.PIPE
            )
        self.socket.settimeout(20)

    def sendall(self, data: bytes) -> None:
        self.socket.sendall(data)

    def recv(self, size: int) -> bytes:
        return self.socket.recv(size)

    def recv_stderr_ready(self) -> bool:
        return self.process.poll() is not None

    def recv_stderr(self, size: int) -> bytes:
        assert self.process.stderr is not None
        return os.read(self.process.stderr.fileno(), size)

    def close(self) -> None:
        self.socket.close()


class LocalHeads:
    """In the place of `head_lock._dial`."""

    def __init__(self) -> None:
        self.unreachable: set[str] = set()
        self.lines: list[Line] = []
        self.greeting = ""
        """What the start file of the login shell runs."""
        self.turn = threading.RLock()
        """While a thread holds it, no other thread can connect."""

    def dial(self, cluster, node, command):
        with self.turn:
            return self._dial(node, command)

    def _dial(self, node, command):
        if node.name in self.unreachable:
            raise ConnectionFailed(f"Cannot connect to {node.name}: no answer within 1 s.")
        line = Line(f"{self.greeting}\n{command.replace('exec sudo -n -H ', 'exec ', 1)}")
        self.lines.append(line)
        return line, line

    def end(self) -> None:
        for line in self.lines:
            line.close()
            line.process.wait(60)
            if line.process.stderr is not None:
                line.process.stderr.close()
