"""Serves a user the metrics of their own jobs. Runs beside Prometheus, Python 3.9 or newer and its library alone.

Argument: a JSON file with `address`, `port`, `certificate`, `key` (or null), `prometheus`, `user`, `password_file`,
`ca_file` (or null), `operators` (users who may see all jobs) and `days` (how far back a job may lie).
"""

from __future__ import annotations

import json
import math
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rackwright.job_metrics.identity import Refused, name_of
from rackwright.job_metrics.questions import JOB, UNITS, expressions, ownership
from rackwright.prometheus.program import Asker, Failed

PREFIX = "/v1/jobs/"
HEADER = "X-Munge-Credential"
AT_ONCE = 4
POINTS = 200
LEAST_STEP = 30
LIMITS = {"query_seconds": 20, "seconds": 60, "answer_bytes": 8 << 20, "bytes": 32 << 20}
"""Of the questions about one job."""
QUIET_SECONDS = 30
"""A client that sends nothing for so long is left."""


def answer(
    config: dict[str, Any], prometheus: Asker, job: str, user: str, since: float
) -> tuple[int, dict[str, Any]]:
    """HTTP status and document for a user who asks for a job.

    Another user's job and one that never existed look the same: 404 and no series.
    """
    owner = None if user in config["operators"] else user
    if not prometheus.series({"query": ownership(job, owner, config["days"])}):
        return 404, {
            "job": job,
            "error": f"no job {job} of {user} in the last {config['days']} days",
            "series": [],
        }
    end = prometheus.now
    span = min(max(since, 60.0), config["days"] * 86400.0)
    step = max(float(LEAST_STEP), span / POINTS)
    series = [
        {"name": name, "unit": UNITS[name], "labels": labels, "points": _points(points)}
        for name, expression in expressions(job, owner).items()
        for labels, points in prometheus.series({"query": expression, "over": span, "step": step})
    ]
    return 200, {"job": job, "user": user, "from": end - span, "to": end, "step": step, "series": series}


def _points(values: list[tuple[float, str]]) -> list[tuple[float, float]]:
    """Without NaN and infinities, which JSON cannot express."""
    pairs = ((float(at), float(value)) for at, value in values)
    return [(at, value) for at, value in pairs if math.isfinite(value)]


def handler(config: dict[str, Any]) -> type:
    """Answers GET /v1/jobs/NUMBER?since=SECONDS."""
    asked = {"url": config["prometheus"], "limits": LIMITS}
    asked |= {name: config[name] for name in ("user", "password_file", "ca_file")}
    places = BoundedSemaphore(AT_ONCE)

    class Handler(BaseHTTPRequestHandler):
        timeout = QUIET_SECONDS

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            job = url.path[len(PREFIX) :]
            if not url.path.startswith(PREFIX) or not JOB.fullmatch(job):
                self._send(404, {"error": "ask for /v1/jobs/NUMBER"})
                return
            try:
                since = float(parse_qs(url.query).get("since", ["3600"])[0])
                user = name_of(self.headers.get(HEADER, ""), job)
            except ValueError:
                self._send(400, {"error": "since is a number of seconds"})
                return
            except Refused as error:
                self._send(401, {"error": str(error)})
                return
            if not places.acquire(blocking=False):
                self._send(503, {"error": "too many questions at once; ask again"})
                return
            try:
                self._send(*answer(config, Asker(asked), job, user, since))
            except (Failed, OSError, ValueError, TypeError) as error:
                print(error, file=sys.stderr, flush=True)  # the user learns no more than that
                self._send(502, {"error": "Prometheus does not answer"})
            finally:
                places.release()

        def _send(self, status: int, document: dict[str, Any]) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Requests are not logged: which job a user looks at is private."""

    return Handler


class Server(ThreadingHTTPServer):
    """Its TLS handshakes happen in the threads of connections, so that a slow client holds up no other."""

    daemon_threads = True
    tls: Any = None

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - socketserver's own
        request.settimeout(QUIET_SECONDS)
        if self.tls is not None:
            try:
                request = self.tls.wrap_socket(request, server_side=True)
            except (OSError, ssl.SSLError):
                return
        super().finish_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """A client that disconnects is not an error."""


def main(path: str) -> None:
    """Until it is ended."""
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    server = Server((config["address"], config["port"]), handler(config))
    if config["certificate"] is not None:
        server.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.tls.load_cert_chain(config["certificate"], config["key"])
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
