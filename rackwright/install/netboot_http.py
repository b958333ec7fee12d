"""Files for UEFI HTTP boot: plain HTTP on the boot network, for armed machines, during an installation.

Each machine's files have a random path, which only DHCP and its BMC give it, and only its address gets an answer.
Plain HTTP, because firmware accepts only server certificates of CAs that were enrolled in it before.
"""

from __future__ import annotations

import io
import os
import re
import secrets
import socket
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import BinaryIO

from rackwright.install.agent_image import GRUB_NET, INITRAMFS, KERNEL, SHIM
from rackwright.install.listener import FileHandler, Listener
from rackwright.install.media import Armed, http_files, http_menu

_POLL_SECONDS = 0.2
_MENU = "grub/grub.cfg"
_OF_AGENT = (SHIM, GRUB_NET, KERNEL, INITRAMFS)


@dataclass(frozen=True, slots=True)
class _Served:
    address: str
    """The only address that gets the files."""
    path: str = field(repr=False)
    own: dict[str, bytes] = field(repr=False)
    """Content of the machine's files, by name."""


class HttpFiles:
    """What armed machines may download; only the agent, which is the same for all, is on disk."""

    def __init__(self, agent: Path) -> None:
        self._agent = agent
        self._served: dict[str, _Served] = {}

    def arm(self, node: str, address: IPv4Address, armed: Armed) -> str:
        """Serve the files of one more machine; returns the path of its boot file."""
        path = secrets.token_urlsafe(24)
        self._served[node] = _Served(str(address), path, http_files(armed))
        return f"/{path}/{SHIM}"

    def disarm(self, node: str) -> None:
        """Stop serving it."""
        self._served.pop(node, None)

    def open(self, address: str, path: str) -> BinaryIO | None:
        """The file at a path, for this client; None if there is none for it."""
        path = re.sub("/+", "/", path).lstrip("/")
        for served in list(self._served.values()):
            if served.address != address:
                continue
            if path == _MENU:
                return io.BytesIO(http_menu())
            folder, _, name = path.partition("/")
            if not secrets.compare_digest(folder.encode(), served.path.encode()):
                continue
            if name in served.own:
                return io.BytesIO(served.own[name])
            if name in _OF_AGENT:
                return (self._agent / name).open("rb")
        return None


class HttpServer:
    """Serves them on a listening socket until it is closed."""

    def __init__(self, files: HttpFiles, listener: socket.socket) -> None:
        self._listener = _Listener(files, listener)
        self._listener.start(_POLL_SECONDS)

    def close(self) -> None:
        """Stop serving."""
        self._listener.close()


class _Listener(Listener):
    def __init__(self, files: HttpFiles, listener: socket.socket) -> None:
        super().__init__(listener, _Handler, None)
        self.files = files


class _Handler(FileHandler):
    server: _Listener

    def do_HEAD(self) -> None:  # noqa: N802 - http.server's name
        self._get(with_body=False)

    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        self._get(with_body=True)

    def _get(self, *, with_body: bool) -> None:
        try:
            stream = self.server.files.open(self.client_address[0], self.path.partition("?")[0])
        except OSError:
            stream = None
        if stream is None:
            self.send_json(404, {"error": "not here"})
            return
        with stream:
            size = stream.seek(0, os.SEEK_END)
            self.send_file(stream, size, with_body=with_body)
