"""A UNIX socket in place of qemu's, served by a test."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Serve = Callable[[socket.socket], None]
Start = Callable[..., Path]
"""Starts a server and returns its path."""


class Server:
    """A UNIX socket that serves one client after the other, as a character device of qemu does."""

    def __init__(self, path: Path, serve: Serve) -> None:
        self.failures: list[Exception] = []
        self.served = 0
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # bind() takes 108 bytes at most; the folder's own descriptor is shorter than its path
        with _folder(path.parent) as folder:
            self._listening.bind(f"/proc/self/fd/{folder}/{path.name}")
        self._listening.listen(4)
        self._serve = serve
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            with client:
                self.served += 1
                try:
                    self._serve(client)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client has seen enough
                except (AssertionError, ValueError, OSError) as error:
                    self.failures.append(error)

    def close(self) -> None:
        self._listening.close()


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_PATH)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def line(client: socket.socket) -> bytes:
    """One line from the client; AssertionError where it hangs up."""
    text = b""
    while not text.endswith(b"\n"):
        byte = client.recv(1)
        if not byte:
            raise BrokenPipeError
        text += byte
    return text


def answer(client: socket.socket, value: object) -> None:
    client.sendall(json.dumps(value).encode() + b"\n")


def sync(client: socket.socket, before: bytes = b"") -> None:
    """The agent's part of guest-sync-delimited, with what it still had to send before it."""
    text = line(client)
    assert text[:1] == b"\xff"  # ends the half request of a client that was killed
    request = json.loads(text[1:])
    assert request["execute"] == "guest-sync-delimited"
    client.sendall(before + b"\xff" + json.dumps({"return": request["arguments"]["id"]}).encode() + b"\n")


class Agent:
    """A guest agent that answers as set, and remembers what it was asked."""

    def __init__(self, *states: object, pid: object = 7) -> None:
        self.asked: list[dict[str, object]] = []
        self._states = list(states)
        self._pid = pid

    def __call__(self, client: socket.socket) -> None:
        sync(client)
        while True:
            request = json.loads(line(client))
            self.asked.append(request)
            if request["execute"] == "guest-exec":
                answer(client, {"return": {"pid": self._pid}})
            else:
                state = self._states[0] if len(self._states) == 1 else self._states.pop(0)
                answer(client, {"return": state})
