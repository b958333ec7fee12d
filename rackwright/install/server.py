"""The HTTPS server that agents and BMCs reach while an installation runs.

Agents call /v1/... with a bearer token; BMCs fetch boot media at random paths. All else is 404, and nothing is listed.
"""

from __future__ import annotations

import http.server
import json
import os
import re
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from rackwright.boundary import Refused, read_json
from rackwright.errors import RackwrightError
from rackwright.install.desk import Desk

_BODY_MAX = 4 * 2**20
_CHUNK = 1 << 18
_IDLE_SECONDS, _POLL_SECONDS = 120, 0.2
_CONNECTIONS, _OF_ONE_ADDRESS = 512, 128
_LENGTH = re.compile(r"[0-9]{1,12}")
_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{1,18})?$")


class Server:
    """Listens on sockets that are bound already, until it is closed."""

    def __init__(self, desk: Desk, listeners: Sequence[socket.socket], chain: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(chain)
        self._servers = [_Listener(desk, listener, context) for listener in listeners]
        for server in self._servers:
            threading.Thread(
                target=server.serve_forever, kwargs={"poll_interval": _POLL_SECONDS}, daemon=True
            ).start()

    def close(self) -> None:
        """Stop answering."""
        for server in self._servers:
            server.shutdown()
            server.server_close()


class Places:
    """Limits on open connections: in all, and for one address, so that others still get through."""

    def __init__(self) -> None:
        self._lock, self._open = threading.Lock(), Counter[str]()

    def take(self, address: str) -> bool:
        """Whether one more connection of this address may be open, which is counted then."""
        with self._lock:
            if self._open.total() >= _CONNECTIONS or self._open[address] >= _OF_ONE_ADDRESS:
                return False
            self._open[address] += 1
            return True

    def leave(self, address: str) -> None:
        """A connection has ended."""
        with self._lock:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, desk: Desk, listener: socket.socket, context: ssl.SSLContext) -> None:
        super().__init__(("", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.desk = desk
        self._context = context
        self._places = Places()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = self.socket.accept()
        connection.settimeout(_IDLE_SECONDS)
        # the handshake is the connection's own thread's: one that never ends keeps no one else waiting
        return self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

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
        """A connection that breaks concerns its own agent, which asks again."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener
    server_version, sys_version = "rackwright", ""
    timeout = _IDLE_SECONDS
    disable_nagle_algorithm = True  # headers and body are written apart: else each answer waits 40 ms

    def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401
        """Paths of boot media are secret; the journal says what happened."""

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length") or "0"
        if not _LENGTH.fullmatch(length) or int(length) > _BODY_MAX:
            self.close_connection = True
            self._answer(413, {"error": "the body is too large"})
            return
        try:
            body = read_json(self.rfile.read(int(length)).decode("utf-8", "replace") or "{}")
        except Refused as refused:
            self._answer(400, {"error": str(refused)})
            return
        if not isinstance(body, dict):
            self._answer(400, {"error": "the body is not an object"})
            return
        try:
            answer = self.server.desk.answer(self.path, self._token(), body)
        except (OSError, RackwrightError):  # e.g. the journal's disk is full: the agent asks again
            answer = 503, {"error": "the head cannot answer now"}
        self._answer(*answer)

    def do_HEAD(self) -> None:
        self._get(with_body=False)

    def do_GET(self) -> None:
        self._get(with_body=True)

    def _get(self, *, with_body: bool) -> None:
        path = self.path.partition("?")[0]
        if path == "/v1/image":
            image = self.server.desk.image_of(self._token())
            file = image.file if image is not None else None
        else:
            file = self.server.desk.media(path)
        if file is None:
            self._answer(403 if path.startswith("/v1/") else 404, {"error": "not here"})
            return
        try:
            stream = file.open("rb")
        except OSError:
            self._answer(404, {"error": "not here"})
            return
        with stream:
            self._send(stream, os.fstat(stream.fileno()).st_size, with_body)

    def _send(self, stream: BinaryIO, size: int, with_body: bool) -> None:
        asked = self.headers.get("Range")
        found = _RANGE.match(asked) if asked else None
        first = int(found[1]) if found else 0
        last = min(int(found[2]), size - 1) if found and found[2] else size - 1
        if found and first > last:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{size}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if found else 200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Accept-Ranges", "bytes")
        if found:
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        if not with_body:
            return
        stream.seek(first)
        left = last - first + 1
        while left > 0 and (chunk := stream.read(min(_CHUNK, left))):
            self.wfile.write(chunk)
            left -= len(chunk)

    def _token(self) -> str:
        scheme, _, token = (self.headers.get("Authorization") or "").partition(" ")
        return token.strip() if scheme == "Bearer" else ""

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)
