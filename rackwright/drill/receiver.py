"""An Alertmanager webhook that records what it receives. Runs on a node as root, Python 3.9 or newer.

Arguments: a port on 127.0.0.1, and the file that each alert of each notification is added to, a line of JSON each:
{"status": "firing" or "resolved", "labels": {...}}.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

LARGEST = 4 << 20
_writing = Lock()


def lines_of(body: bytes) -> list[str]:
    """A line for each alert of a notification; ValueError where it is none (Alertmanager's webhook format, version 4)."""
    found = json.loads(body)
    if not isinstance(found, dict) or not isinstance(found.get("alerts"), list):
        raise ValueError("not a notification from Alertmanager")  # noqa: TRY004 - the document is wrong
    return [
        json.dumps({"status": alert["status"], "labels": alert["labels"]}, sort_keys=True)
        for alert in found["alerts"]
        if isinstance(alert, dict) and isinstance(alert.get("labels"), dict) and "status" in alert
    ]


def handler(path: str) -> type[BaseHTTPRequestHandler]:
    """Answers 200 once the notification is in the file."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if not 0 < length <= LARGEST:
                self.send_error(413)
                return
            try:
                lines = lines_of(self.rfile.read(length))
            except ValueError:
                self.send_error(400)
                return
            with _writing, open(path, "a", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the file is the log."""

    return Receiver


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    """Alertmanager sends each alert alone, and many at once when the drills begin."""


def main(port: str, path: str) -> None:
    """Until it is ended."""
    with _Server(("127.0.0.1", int(port)), handler(path)) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
