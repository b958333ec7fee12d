"""The HTTPS server for agents and BMCs during an installation.

Agents call /v1/... with a bearer token; BMCs download boot media at random paths. Everything else is 404, and nothing is listed.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path

from rackwright.boundary import Refused, read_json
from rackwright.errors import RackwrightError
from rackwright.install.desk import Desk
from rackwright.install.listener import FileHandler, Listener

_BODY_MAX = 4 * 2**20
_POLL_SECONDS = 0.2
_LENGTH = re.compile(r"[0-9]{1,12}")


class Server:
    """Serves on bound sockets until it is closed."""

    def __init__(self, desk: Desk, listeners: Sequence[socket.socket], chain: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(chain)
        self._servers = [_Listener(desk, listener, context) for listener in listeners]
        for server in self._servers:
            server.start(_POLL_SECONDS)

    def close(self) -> None:
        """Stop serving."""
        for server in self._servers:
            server.close()


class _Listener(Listener):
    def __init__(self, desk: Desk, listener: socket.socket, context: ssl.SSLContext) -> None:
        super().__init__(listener, _Handler, context)
        self.desk = desk


class _Handler(FileHandler):
    server: _Listener

    def do_POST(self) -> None:  # noqa: N802 - http.server's name
        length = self.headers.get("Content-Length") or "0"
        if not _LENGTH.fullmatch(length) or int(length) > _BODY_MAX:
            self.close_connection = True
            self.send_json(413, {"error": "the body is too large"})
            return
        try:
            body = read_json(self.rfile.read(int(length)).decode("utf-8", "replace") or "{}")
        except Refused as refused:
            self.send_json(400, {"error": str(refused)})
            return
        if not isinstance(body, dict):
            self.send_json(400, {"error": "the body is not an object"})
            return
        try:
            answer = self.server.desk.answer(self.path, self._token(), body)
        except (OSError, RackwrightError):  # e.g. the journal's disk is full: the agent retries
            answer = 503, {"error": "the head cannot answer now"}
        self.send_json(*answer)

    def do_HEAD(self) -> None:  # noqa: N802 - http.server's name
        self._get(with_body=False)

    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        self._get(with_body=True)

    def _get(self, *, with_body: bool) -> None:
        path = self.path.partition("?")[0]
        if path == "/v1/image":
            image = self.server.desk.image_of(self._token())
            file = image.file if image is not None else None
        else:
            file = self.server.desk.media(path)
        if file is None:
            self.send_json(403 if path.startswith("/v1/") else 404, {"error": "not here"})
            return
        try:
            stream = file.open("rb")
        except OSError:
            self.send_json(404, {"error": "not here"})
            return
        with stream:
            self.send_file(stream, os.fstat(stream.fileno()).st_size, with_body=with_body)

    def _token(self) -> str:
        scheme, _, token = (self.headers.get("Authorization") or "").partition(" ")
        return token.strip() if scheme == "Bearer" else ""
