"""Answers Prometheus over TLS, from the file that the collector writes; never queries Slurm and has no rights to."""

from __future__ import annotations

import argparse
import contextlib
import socket
import sys
import threading
import time
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, NoReturn

from rackwright.boundary import printable
from rackwright.workload.slurm.metrics import snapshot
from rackwright.workload.slurm.metrics.access import Access, Refused
from rackwright.workload.slurm.metrics.families import exposition, gauge

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_CONNECTIONS = 32
_READ_SECONDS = 10.0
_WHOLE_SECONDS = 60.0
"""Time limit of a connection, even while it sends."""


class Settings(NamedTuple):
    """Where it listens, what it reads, and from when on that is too old."""

    address: str
    port: int
    web_config: str
    snapshot: str
    stale_seconds: float


def answer(path: str, stale_seconds: float, now: float) -> bytes:
    """The answer to a scrape. Figures that are too old are left out: they would look current."""
    up, age, metrics = 0, None, b""
    with contextlib.suppress(snapshot.Unreadable):
        found = snapshot.read(path)
        if found.collected is not None:
            age = max(0.0, now - found.collected)
            fresh = age <= stale_seconds
            up = int(fresh and found.error is None)
            metrics = found.metrics if fresh else b""
    own = exposition(
        [
            gauge("slurm_up", "Whether Slurm answered when it was last asked.", (), [((), up)]),
            gauge(
                "slurm_scrape_age_seconds",
                "How long ago Slurm last answered.",
                (),
                [] if age is None else [((), age)],
            ),
        ]
    )
    return metrics + own


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "slurm-exporter"
    sys_version = ""

    def do_GET(self) -> None:
        """Metrics, to those who may read."""
        if not self.server.access.admits(self.headers.get("Authorization")):
            self._send(
                HTTPStatus.UNAUTHORIZED, b"Unauthorized\n", {"WWW-Authenticate": 'Basic realm="metrics"'}
            )
        elif self.path.partition("?")[0] != "/metrics":
            self._send(HTTPStatus.NOT_FOUND, b"The metrics are at /metrics.\n", {})
        else:
            settings = self.server.settings
            self._send(HTTPStatus.OK, answer(settings.snapshot, settings.stale_seconds, time.monotonic()), {})

    do_HEAD = do_GET  # noqa: N815 - http.server's name

    def _send(self, status: HTTPStatus, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {
            **headers,
            "Content-Type": CONTENT_TYPE,
            "Content-Length": str(len(body)),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing of each scrape."""


class Server(ThreadingHTTPServer):
    """A thread for each of the few connections; TLS is negotiated in it, so that no client delays another."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.access = Access(settings.web_config)
        self._places = threading.BoundedSemaphore(_CONNECTIONS)
        super().__init__((settings.address, settings.port), _Handler)

    def server_bind(self) -> None:
        """Without looking up the host's name, which may take long."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = self.settings.address, self.socket.getsockname()[1]

    def process_request(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Close a connection beyond the limit."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """One connection, from TLS to its end."""
        try:
            if isinstance(request, socket.socket):
                self._serve(request, client_address)
        except OSError as error:  # e.g. no file descriptor is left
            _log(f"a connection was refused: {error}")
            self.shutdown_request(request)
        finally:
            self._places.release()

    def _serve(self, request: socket.socket, client_address: object) -> None:
        with request.dup() as connection:  # TLS takes the first one over
            end = threading.Timer(_WHOLE_SECONDS, _shut, (connection,))
            end.daemon = True
            end.start()
            try:
                secured = self._secured(request)
                if secured is not None:
                    super().process_request_thread(secured, client_address)
            finally:
                end.cancel()

    def _secured(self, request: socket.socket) -> socket.socket | None:
        """The connection over TLS; None if the handshake fails."""
        request.settimeout(_READ_SECONDS)
        try:
            self.access.refresh()
        except (OSError, Refused, ValueError) as error:  # keep the last configuration that could be read
            _log(f"{self.settings.web_config}: {error}")
        context = self.access.context
        if context is None:
            return request
        try:
            return context.wrap_socket(request, server_side=True)
        except (OSError, ValueError):  # TLS' own errors are OSErrors
            self.shutdown_request(request)
            return None

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that disconnected does not deserve a traceback."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            _log(f"{type(error).__name__}: {error}")


def _shut(connection: socket.socket) -> None:
    """End a connection while its thread waits for it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _log(text: str) -> None:
    sys.stderr.write(f"{printable(text, 300)}\n")
    sys.stderr.flush()


def settings_of(arguments: Sequence[str]) -> Settings:
    """Its command line; the first two are those of Prometheus' exporters."""
    parser = argparse.ArgumentParser(description="Serves what the collector knows of Slurm.")
    parser.add_argument("--web.listen-address", dest="listen", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--web.config.file", dest="web_config", required=True, metavar="PATH")
    parser.add_argument("--snapshot", required=True, metavar="PATH")
    parser.add_argument("--stale-seconds", type=float, required=True, metavar="SECONDS")
    found = parser.parse_args(arguments)
    address, _, port = found.listen.rpartition(":")
    return Settings(address, int(port), found.web_config, found.snapshot, found.stale_seconds)


def main(arguments: Sequence[str]) -> NoReturn:
    """The program."""
    try:
        server = Server(settings_of(arguments))
    except (OSError, Refused, ValueError) as error:
        sys.exit(f"{error}")
    server.serve_forever()
    sys.exit(0)
