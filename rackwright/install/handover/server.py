"""The plain HTTP server that installers fetch their answers from, while a run lasts.

Installers trust it without preparation, which they do with no CA of a site's. Only GET, only exact names below a random folder,
only to the machine that they are for; all else is 404.
"""

from __future__ import annotations

import http.server
import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rackwright.errors import RackwrightError
from rackwright.install.server import Places

_PATH = re.compile(r"/([A-Za-z0-9_-]{16,64})/([a-z.-]{1,32})")
_IDLE_SECONDS, _POLL_SECONDS = 60, 0.2
Find = Callable[[str, str, str], bytes | None]
"""Folder, name and address of who asks, to the content of the file."""


class AnswerServer:
    """Listens on a socket that is bound already, until it is closed."""

    def __init__(self, listener: socket.socket, find: Find) -> None:
        self._server = _Listener(listener, find)
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": _POLL_SECONDS}, daemon=True
        ).start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: socket.socket, find: Find) -> None:
        super().__init__(("", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.find = find
        self._places = Places()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        if not self._places.take(client_address[0]):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._places.leave(client_address[0])
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.leave(client_address[0])

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """A connection that breaks concerns its own machine."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Listener
    server_version, sys_version = "rackwright", ""
    timeout = _IDLE_SECONDS

    def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401
        """Paths have the random folder; the journal says what was fetched."""

    def do_GET(self) -> None:
        found = _PATH.fullmatch(self.path)
        try:
            content = None if found is None else self.server.find(found[1], found[2], self.client_address[0])
        except (OSError, RackwrightError):  # e.g. the journal's disk is full: nothing was given out
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
