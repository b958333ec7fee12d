"""Listening for agents, BMCs and firmware: limits on connections, and files that are sent whole or in part."""

from __future__ import annotations

import http.server
import json
import re
import socket
import ssl
import threading
from collections import Counter
from contextlib import suppress
from typing import Any, BinaryIO

_CHUNK = 1 << 18
_IDLE_SECONDS = 120
_CONNECTIONS, _OF_ONE_ADDRESS = 512, 128
_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{1,18})?$")


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


class Listener(http.server.ThreadingHTTPServer):
    """Answers on a socket that listens already; with TLS where a context is given."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self, listener: socket.socket, handler: type[FileHandler], context: ssl.SSLContext | None
    ) -> None:
        super().__init__(("", 0), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._context = context
        self._places = Places()

    def start(self, poll_seconds: float) -> None:
        """Answer from now on, in threads."""
        threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": poll_seconds}, daemon=True
        ).start()

    def close(self) -> None:
        """Stop answering."""
        self.shutdown()
        self.server_close()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = self.socket.accept()
        connection.settimeout(_IDLE_SECONDS)
        if self._context is None:
            return connection, address
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
        """A connection that breaks concerns its own client, which asks again."""


class FileHandler(http.server.BaseHTTPRequestHandler):
    """Sends files and short JSON answers; nothing is logged and nothing is listed."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "rackwright", ""
    timeout = _IDLE_SECONDS
    disable_nagle_algorithm = True  # headers and body are written apart: else each answer waits 40 ms

    def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401
        """Paths of boot media are secret; the journal says what happened."""

    def send_file(self, stream: BinaryIO, size: int, *, with_body: bool) -> None:
        """The file, or the range of it that was asked for."""
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

    def send_json(self, status: int, body: dict[str, Any]) -> None:
        """A short answer."""
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
