"""A head as the agent sees it: one token, answers that a test decides, and an image that may break off."""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PORT = 8443
Decide = Callable[[dict[str, Any], int], dict[str, Any]]


class Head:
    """Serves one machine and keeps everything that it sends."""

    def __init__(self, listener: socket.socket, chain: Path, image: Path | None = None) -> None:
        self.token, self.session = secrets.token_urlsafe(24), ""
        self.image = image
        self.decide: Decide = lambda document, count: {"action": "off", "reasons": ["the test is over"]}
        self.breaks_at: list[int] = []
        """Bytes after which a connection with the image is cut, once each."""
        self.hello: dict[str, Any] | None = None
        self.inventories: list[dict[str, Any]] = []
        self.progress: list[dict[str, Any]] = []
        self.ranges: list[str] = []
        self.done: dict[str, Any] | None = None
        self.failed: dict[str, Any] | None = None
        self.refused: list[str] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        self._server = _Server(self, listener, context)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def described(self) -> dict[str, Any]:
        """The image as an install object has it."""
        assert self.image is not None
        with self.image.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"size": self.image.stat().st_size, "sha256": digest, "name": self.image.name}

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, token: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """What a call gets."""
        if path == "/v1/hello" and token == self.token and self.hello is None:
            self.session = body.pop("session")
            self.hello = body
            return 200, {"clock": int(time.time())}
        if token != self.session or not self.session:
            self.refused.append(path)
            return 403, {"error": "token unknown, spent or old"}
        if path == "/v1/inventory":
            self.inventories.append(body)
            return 200, self.decide(body, len(self.inventories))
        if path == "/v1/progress":
            self.progress.append(body)
        elif path == "/v1/done":
            self.done = body
        elif path == "/v1/failed":
            self.failed = body
        return 200, {}


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, head: Head, listener: socket.socket, context: ssl.SSLContext) -> None:
        super().__init__(("", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = context.wrap_socket(listener, server_side=True, do_handshake_on_connect=False)
        self.head = head

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks is the agent's to repeat."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = self.server.head.answer(self.path, self._token(), body)
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self) -> None:
        head, asked = self.server.head, self.headers.get("Range", "")
        assert head.image is not None
        if self.path != "/v1/image" or self._token() != head.session:
            self.send_error(403)
            return
        head.ranges.append(asked)
        match = re.fullmatch(r"bytes=(\d+)-", asked)
        assert match is not None
        start, size = int(match[1]), head.image.stat().st_size
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        self.send_header("Content-Length", str(size - start))
        self.end_headers()
        end = min((at for at in head.breaks_at if at > start), default=size)
        with head.image.open("rb") as file:
            file.seek(start)
            while start < end and (block := file.read(min(1 << 18, end - start))):
                self.wfile.write(block)
                start += len(block)
        if end < size:
            head.breaks_at.remove(end)
            self.close_connection = True

    def _token(self) -> str:
        return self.headers.get("Authorization", "").removeprefix("Bearer ")
