"""Serves agents, BMCs and firmware: limits connections, and sends files whole or in part."""

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
    """Limits open connections, in all and per address, so that one client cannot block the others."""

    def __init__(self) -> None:
        self._lock, self._open = threading.Lock(), Counter[str]()

    def take(self, address: str) -> bool:
        """Whether this address may open one more connection; if so, it is counted."""
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
    """Serves on a listening socket, with TLS if a context is given."""

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
        """Start serving in threads."""
        threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": poll_seconds}, daemon=True
        ).start()

    def close(self) -> None:
        """Stop serving."""
        self.shutdown()
        self.server_close()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = self.socket.accept()
        connection.settimeout(_IDLE_SECONDS)
        if self._context is None:
            return connection, address
        # the handshake runs in the connection's thread, so a stalled one blocks no other
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
        """A broken connection affects only its client, which retries."""


class FileHandler(http.server.BaseHTTPRequestHandler):
    """Sends files and short JSON answers; logs nothing and lists nothing."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "rackwright", ""
    timeout = _IDLE_SECONDS
    disable_nagle_algorithm = True  # headers and body are written apart: else each answer waits 40 ms

    def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401
        """Do not log: paths of boot media are secret, and the journal has the events."""

    def send_file(self, stream: BinaryIO, size: int, *, with_body: bool) -> None:
        """Send the file, or the requested range of it."""
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
