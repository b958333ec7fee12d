"""The plain HTTP server from which installers download their answers during a run.

Installers trust it without preparation, which they would not do with a site's CA. Only GET, only exact names in a random
folder, and only for the intended machine; everything else is 404.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from contextlib import suppress

from rackwright.errors import RackwrightError
from rackwright.install.listener import FileHandler, Listener

_PATH = re.compile(r"/([A-Za-z0-9_-]{16,64})/([a-z.-]{1,32})")
_POLL_SECONDS = 0.2
Find = Callable[[str, str, str], bytes | None]
"""Folder, name and client address to the content of the file."""


class AnswerServer(Listener):
    """Serves on a bound socket until it is closed."""

    def __init__(self, listener: socket.socket, find: Find) -> None:
        super().__init__(listener, _Handler, None)
        self.find = find
        self.start(_POLL_SECONDS)


class _Handler(FileHandler):
    server: AnswerServer
    protocol_version = "HTTP/1.0"  # one file for each connection: installers' programs ask once

    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        found = _PATH.fullmatch(self.path)
        try:
            content = None if found is None else self.server.find(found[1], found[2], self.client_address[0])
        except (OSError, RackwrightError):  # e.g. the journal's disk is full: nothing was served
            self._answer(503, b"the head cannot answer now\n")
            return
        self._answer(*((404, b"not here\n") if content is None else (200, content)))

    def _answer(self, status: int, content: bytes) -> None:
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(content)
