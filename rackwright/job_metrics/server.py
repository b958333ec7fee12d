"""Serves a user the metrics of that user's jobs. Runs beside Prometheus, Python 3.9 or newer and its library alone.

Argument: a JSON file with `address`, `port`, `certificate`, `key` (or null), `prometheus`, `user`, `password_file`,
`ca_file` (or null), `operators` (users who may see all jobs) and `days` (how far back a job may lie).
"""

from __future__ import annotations

import json
import math
import ssl
import sys
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rackwright.job_metrics.connections import Request, Server
from rackwright.job_metrics.identity import Refused, name_of
from rackwright.job_metrics.questions import JOB, UNITS, USER_MAX, expressions, is_askable, ownership
from rackwright.prometheus.program import Asker, Failed

PREFIX = "/v1/jobs/"
HEADER = "X-Munge-Credential"
AT_ONCE = 4
POINTS = 200
LEAST_STEP = 30
LIMITS = {"query_seconds": 20, "seconds": 60, "answer_bytes": 8 << 20, "bytes": 32 << 20}
"""Of the questions about one job."""


def answer(
    config: dict[str, Any], prometheus: Asker, job: str, user: str, since: float
) -> tuple[int, dict[str, Any]]:
    """HTTP status and document for a user who asks for a job.

    Another user's job and one that never existed look the same: 404 and no series.
    """
    owner = None if user in config["operators"] else user
    if owner is not None and not is_askable(owner):
        return 403, {
            "error": f"your user name has more than {USER_MAX} characters, or some that cannot be printed"
        }
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

    class Handler(Request):
        def do_GET(self) -> None:  # noqa: N802 - http.server's name
            url = urlsplit(self.path)
            job = url.path[len(PREFIX) :]
            if not url.path.startswith(PREFIX) or not JOB.fullmatch(job):
                self.reply(404, {"error": "ask for /v1/jobs/NUMBER"})
                return
            try:
                since = float(parse_qs(url.query).get("since", ["3600"])[0])
            except ValueError:
                self.reply(400, {"error": "since is a number of seconds"})
                return
            if not places.acquire(blocking=False):  # before `unmunge`: any client can have it run
                self.reply(503, {"error": "too many questions at once; ask again"})
                return
            try:
                user = name_of(self.headers.get(HEADER, ""), job)
                self.reply(*answer(config, Asker(asked), job, user, since))
            except Refused as error:
                self.reply(401, {"error": str(error)})
            except (Failed, OSError, ValueError, TypeError) as error:
                print(error, file=sys.stderr, flush=True)  # the user learns no more than that
                self.reply(502, {"error": "Prometheus does not answer"})
            finally:
                places.release()

    return Handler


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
