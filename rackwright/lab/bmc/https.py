"""HTTPS of a BMC: TLS, one request after another on each connection, and the faults of the BMC itself."""

from __future__ import annotations

import json
import socket
import ssl
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import BoundedSemaphore
from urllib.parse import parse_qsl, unquote, urlsplit

from rackwright.boundary import Refused, read_json
from rackwright.lab.bmc.refusal import Refusal, bad_request
from rackwright.lab.bmc.tree import Answer, Request

_BODY_MAX = 256 << 10
_IDLE_SECONDS = 60.0
_HANDSHAKE_SECONDS = 30.0
_CONNECTIONS = 32
_RETRY_SECONDS = 5
_HANGING = 600.0
_BACKLOG = 64


@dataclass(frozen=True, slots=True)
class Service:
    """What answers at one address."""

    listener: socket.socket
    faults: Callable[[], Mapping[str, Sequence[str]]]
    """Those of the node whose BMC is declared here."""
    chain: Callable[[bool], Path]
    """Certificate and key; True: those that nothing vouches for."""
    answer: Callable[[Request], Answer]


class BmcServer(ThreadingHTTPServer):
    """The server of one address; its connections have a thread each, up to a limit."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, service: Service) -> None:
        super().__init__(service.listener.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = service.listener
        self.socket.listen(_BACKLOG)
        self.service = service
        self._places = BoundedSemaphore(_CONNECTIONS)

    def verify_request(self, request: object, client_address: object) -> bool:
        """Whether there is a place for one more connection."""
        return self._places.acquire(blocking=False)

    def process_request_thread(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        """Serve a connection to its end."""
        try:
            with suppress(OSError):  # a client that hung up gets no answer
                self._serve(request, client_address)
        finally:
            self._places.release()
            request.close()

    def _serve(self, request: socket.socket, client_address: object) -> None:
        if "bmc:hang" in self.service.faults():
            return self._hang(request)
        request.settimeout(_HANDSHAKE_SECONDS)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.service.chain("bmc:certificate" in self.service.faults()))
        with context.wrap_socket(request, server_side=True) as connection:
            connection.settimeout(_IDLE_SECONDS)
            _Handler(connection, client_address, self)
        return None

    def _hang(self, request: socket.socket) -> None:
        """Hold a connection without a word, until the client or the fault is gone."""
        request.settimeout(0.5)
        deadline = time.monotonic() + _HANGING
        while "bmc:hang" in self.service.faults() and time.monotonic() < deadline:
            with suppress(TimeoutError):
                if not request.recv(4096):
                    return


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "rackwright-lab-bmc"
    sys_version = ""
    server: BmcServer

    def _handle(self) -> None:
        faults = self.server.service.faults()
        answer = self._answer(faults)
        if seconds := faults.get("bmc:slow"):
            time.sleep(float(seconds[0]))
        self._send(answer)
        if self.command not in ("GET", "HEAD") or answer.status >= 400:
            # Never a body: it may hold a password, a token or the address of an image.
            print(
                f"{time.strftime('%FT%T')} {self.client_address[0]} {self.command} {urlsplit(self.path).path!r} {answer.status}",
                flush=True,
            )

    do_GET = do_HEAD = do_POST = do_PATCH = do_PUT = do_DELETE = _handle  # noqa: N815 - names of the base class

    def _answer(self, faults: Mapping[str, Sequence[str]]) -> Answer:
        try:
            request = self._request()
            if code := faults.get("bmc:error"):
                retry = {"Retry-After": str(_RETRY_SECONDS)} if code[0] in ("429", "503") else {}
                raise Refusal(int(code[0]), "InternalError", "The BMC failed.", retry)
            return self.server.service.answer(request)
        except Refusal as refusal:
            return Answer(refusal.status, refusal.body, refusal.headers)
        except Exception as error:  # noqa: BLE001 - a mistake of this program is an answer as well
            print(
                f"{self.command} {self.path!r}: {type(error).__name__}: {error}", file=sys.stderr, flush=True
            )
            wrong = Refusal(500, "InternalError", f"The BMC failed: {type(error).__name__}.")
            return Answer(wrong.status, wrong.body)

    def _request(self) -> Request:
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Request(
            method=self.command,
            path=unquote(url.path).rstrip("/"),
            query=dict(parse_qsl(url.query)),
            headers=headers,
            body=self._body(headers),
        )

    def _body(self, headers: Mapping[str, str]) -> dict[str, object]:
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers or not (length.isascii() and length.isdecimal()):
            self.close_connection = True
            raise bad_request("The length of the body is missing.", "MalformedJSON")
        if int(length) > _BODY_MAX:
            self.close_connection = True
            raise Refusal(413, "PayloadTooLarge", f"The body is larger than {_BODY_MAX} bytes.")
        text = self.rfile.read(int(length))
        if not text:
            return {}
        try:
            body = read_json(text, _BODY_MAX)
        except Refused as error:
            raise bad_request(f"The body is not JSON: {error}.", "MalformedJSON") from None
        if not isinstance(body, dict):
            raise bad_request("The body is not an object.", "MalformedJSON")
        return body

    def _send(self, answer: Answer) -> None:
        content = b"" if answer.body is None else json.dumps(answer.body).encode() + b"\n"
        self.send_response(answer.status)
        headers = {"OData-Version": "4.0", "Cache-Control": "no-store", **answer.headers}
        if content:
            headers["Content-Type"] = "application/json; charset=utf-8"
        if answer.status not in (204, 304):
            headers["Content-Length"] = str(len(content))
        if self.close_connection:
            headers["Connection"] = "close"  # else the client sends the next request into it
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: `_handle` logs what matters."""
