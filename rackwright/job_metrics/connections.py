"""Connections of the server of jobs' metrics: each has a thread, and little time, memory and company.

Any process of a node may connect, and authenticates only with its request.
"""

from __future__ import annotations

import contextlib
import io
import json
import socket
import ssl
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HEAD_BYTES = 8192
"""Of a request; http.server alone would read 6 MiB of headers, and need several times as much to parse them."""
UNASKED_MAX = 64
"""Connections that have sent no request yet; one more ends the oldest, so that idle ones keep out no user."""
REQUEST_SECONDS = 20
"""From the begin of a connection to its request."""
WHOLE_SECONDS = 90
"""From the begin of a connection to its end."""


class Request(BaseHTTPRequestHandler):
    """One request, answered in JSON."""

    server: Server

    def setup(self) -> None:
        """Reads the request, and no more of it than `HEAD_BYTES`."""
        super().setup()
        head = b""
        with self.rfile as sent:
            while len(head) < HEAD_BYTES and not head.endswith(b"\r\n\r\n"):
                line = sent.readline(HEAD_BYTES - len(head))
                if not line:
                    break
                head += line
        self.rfile = io.BytesIO(head)
        self.server.asked(self.client_address)

    def reply(self, status: int, document: dict[str, Any]) -> None:
        """Send a document."""
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged: which job a user looks at is private."""


class Server(ThreadingHTTPServer):
    """A thread for each connection; TLS is negotiated there, so that a slow client holds up no other."""

    daemon_threads = True
    request_queue_size = 128
    tls: Any = None

    def __init__(self, address: tuple[str, int], answers: type) -> None:
        self._open: dict[Any, tuple[socket.socket, float]] = {}
        """By the client's address: the connection, as a copy because TLS takes the first one over, and its begin."""
        self._unasked: dict[Any, None] = {}
        """Which of them have sent no request yet, the oldest first."""
        super().__init__(address, answers)

    def asked(self, client: Any) -> None:  # noqa: ANN401 - socketserver's own
        """A client has sent its request."""
        self._unasked.pop(client, None)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Begins a connection."""
        self._open[client_address] = request.dup(), time.monotonic()
        self._unasked[client_address] = None
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """One connection, to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._end(client_address)

    def service_actions(self) -> None:
        """After each new connection, and twice a second: ends those that take too long or are too many."""
        now, unasked = time.monotonic(), list(self._unasked)
        for client in unasked[:-UNASKED_MAX]:
            self._end(client)
        for client, (_, begin) in list(self._open.items()):
            if now - begin > (REQUEST_SECONDS if client in self._unasked else WHOLE_SECONDS):
                self._end(client)

    def _end(self, client: Any) -> None:  # noqa: ANN401
        """End a connection; a thread that waits for it wakes up."""
        self._unasked.pop(client, None)
        connection, _ = self._open.pop(client, (None, 0.0))
        if connection is not None:
            with connection, contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """TLS, then the request."""
        if self.tls is not None:
            try:
                request = self.tls.wrap_socket(request, server_side=True)
            except (OSError, ssl.SSLError):
                return
        super().finish_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """A client that disconnects is not an error."""
