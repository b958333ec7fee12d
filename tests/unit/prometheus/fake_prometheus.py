"""A real HTTP server on localhost that answers as Prometheus does, or as badly as a test wants."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

PASSWORD = "opensesame"
Answers = Callable[[str, dict[str, str]], Any]
"""Path and parameters to the `data` of the answer, or to bytes that are sent as they are."""


@dataclass
class Fake:
    """Where it listens and what it was asked."""

    url: str
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    status: int = 200
    pause: float = 0
    """Seconds between the bytes of an answer."""


@contextmanager
def prometheus(answers: Answers, *, password: str = PASSWORD) -> Iterator[Fake]:
    """Serves until the block is left."""
    wanted = "Basic " + base64.b64encode(f"prometheus:{password}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            given = {name: values[0] for name, values in parse_qs(body).items()}
            if self.headers["Authorization"] != wanted:
                self._send(401, b"Unauthorized\n")
                return
            fake.asked.append((self.path, given))
            answer = answers(self.path, given)
            if not isinstance(answer, bytes):
                answer = json.dumps({"status": "success", "data": answer}).encode()
            self._send(fake.status, answer)

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            for place in range(0, len(body), 1 if fake.pause else 1 << 16):
                try:
                    self.wfile.write(body[place : place + (1 if fake.pause else 1 << 16)])
                except OSError:
                    return
                time.sleep(fake.pause)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake = Fake(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def vector(*series: tuple[dict[str, str], float]) -> dict[str, Any]:
    """The data of an instant query."""
    return {
        "resultType": "vector",
        "result": [{"metric": labels, "value": [1_800_000_000, str(value)]} for labels, value in series],
    }


def matrix(*series: tuple[dict[str, str], list[tuple[float, str]]]) -> dict[str, Any]:
    """The data of a range query."""
    return {
        "resultType": "matrix",
        "result": [
            {"metric": labels, "values": [list(point) for point in points]} for labels, points in series
        ],
    }
