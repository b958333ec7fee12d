"""Serves the files of a folder over HTTP inside a rack's namespace, read-only.

Run as a program: http_server.py NAMESPACE ADDRESS PORT FOLDER. The listening socket is made inside the namespace and
stays there. Only files that are there at the start are served, each found by its exact path, so that no request leads
out of the folder. Standard library only, no imports of the package.
"""

import ctypes
import os
import re
import socket
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO, ClassVar

_CLONE_NEWNET = 0x40000000
_IDLE_SECONDS = 60
_CHUNK = 1 << 18
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD, with ranges, so that a cut download can go on."""

    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    files: ClassVar[dict[str, Path]] = {}

    def do_HEAD(self) -> None:
        """Only the header of an answer."""
        self._answer(body=False)

    def do_GET(self) -> None:
        """A file, or a part of it."""
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = self.files.get(self.path)
        if path is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            wanted = _RANGE.fullmatch(self.headers.get("Range", ""))
            first = int(wanted[1]) if wanted else 0
            last = min(int(wanted[2]), size - 1) if wanted and wanted[2] else size - 1
            if wanted and (first >= size or last < first):
                self.send_error(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
                return
            self.send_response(HTTPStatus.PARTIAL_CONTENT if wanted else HTTPStatus.OK)
            if wanted:
                self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
            self.send_header("Content-Length", str(last - first + 1))
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Last-Modified", self.date_time_string(int(os.fstat(file.fileno()).st_mtime)))
            self.end_headers()
            if body:
                file.seek(first)
                self._copy(file, last - first + 1)

    def _copy(self, file: BinaryIO, left: int) -> None:
        while data := file.read(min(_CHUNK, left)):
            self.wfile.write(data)
            left -= len(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the log would grow with each request of a node."""


class Server(ThreadingHTTPServer):
    """A server on a socket that is made elsewhere."""

    daemon_threads = True

    def __init__(self, listener: socket.socket, folder: Path) -> None:
        super().__init__(listener.getsockname(), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_name, self.server_port = listener.getsockname()
        found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        Handler.files = {f"/{path.relative_to(folder).as_posix()}": path for path in found}

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: a client that hangs up is not an error."""


def listen(namespace: str, address: str, port: int) -> socket.socket:
    """A listening socket inside a namespace; the process comes back."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net", "rb") as home, open(namespace, "rb") as foreign:
        for target in (foreign, home):
            if libc.setns(target.fileno(), _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"cannot enter {target.name}")
            if target is foreign:
                listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(256)  # a hundred nodes ask at once
    return listener


if __name__ == "__main__":
    namespace, address, port, folder = sys.argv[1:]
    Server(listen(namespace, address, int(port)), Path(folder)).serve_forever()
