"""Queries Prometheus, on the node where it runs. Standard library only, Python 3.9 or newer.

Its input is one JSON document: `url`, `user`, `password_file`, `ca_file` (or null), `limits` (`query_seconds`,
`seconds`, `answer_bytes`, `bytes`) and `queries`, each with `query` and, for a range, `over`, `step` and `end` (or null:
now), all in seconds. Each line of its output is a JSON document about one query, in the order in which they end: `n`, its
place in the list, and `series` (pairs of labels and points) or `error`, with `silent` where Prometheus did not answer at all.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import sys
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from typing import Any

AT_ONCE = 4
"""Prometheus itself runs 20 at once by default (--query.max-concurrency)."""
_CHUNK = 1 << 16


class Failed(Exception):  # noqa: N818 - reads as a sentence
    """Why a query has no answer."""


class Silent(Failed):
    """Nothing came from Prometheus."""


class Asker:
    """Prometheus' HTTP API with its password; every answer is limited in time and size."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.limits = document["limits"]
        self.deadline = time.monotonic() + self.limits["seconds"]
        self.left = self.limits["bytes"]
        self.lock = threading.Lock()
        self.now = time.time()
        self.address = urllib.parse.urlsplit(document["url"])
        self.tls = None
        if self.address.scheme == "https":
            self.tls = ssl.create_default_context(cafile=document["ca_file"])
        with open(document["password_file"], encoding="utf-8") as file:
            login = "{}:{}".format(document["user"], file.read().strip())
        self.authorization = "Basic " + base64.b64encode(login.encode()).decode()

    def series(self, query: dict[str, Any]) -> list[Any]:
        """Pairs of labels and points."""
        given = {"query": query["query"], "timeout": f"{self.limits['query_seconds']}s"}
        if query.get("over") is None:
            return _series(self._data("query", {**given, "time": repr(query.get("end") or self.now)}))
        end = query.get("end") or self.now
        span = {"start": repr(end - query["over"]), "end": repr(end), "step": repr(query["step"])}
        return _series(self._data("query_range", {**given, **span}))

    def _data(self, what: str, given: dict[str, str]) -> Any:  # noqa: ANN401 - JSON
        try:
            status, body = self._answer(what, given)
        except (OSError, http.client.HTTPException) as error:  # an error of TLS is one of OSError
            raise Silent(f"Prometheus does not answer: {error or type(error).__name__}") from error
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if status != 200 or not isinstance(found, dict) or found.get("status") != "success":
            reason = found.get("error") if isinstance(found, dict) else None
            raise Failed(f"Prometheus answers {status}: {str(reason or 'no JSON of its API')[:300]}")
        return found.get("data")

    def _answer(self, what: str, given: dict[str, str]) -> tuple[int, bytes]:
        until = min(self.deadline, time.monotonic() + self.limits["query_seconds"] + 1)
        connection = self._connection(until)
        headers = {
            "Authorization": self.authorization,
            "Content-Type": "application/x-www-form-urlencoded",
        }
        path = self.address.path.rstrip("/") + "/api/v1/" + what
        try:
            connection.request("POST", path, urllib.parse.urlencode(given), headers)
            response = connection.getresponse()
            return response.status, self._body(response, until)
        finally:
            connection.close()

    def _connection(self, until: float) -> http.client.HTTPConnection:
        seconds = until - time.monotonic()
        if seconds <= 0:
            raise Failed("not queried: the time was up")
        host, port = self.address.hostname or "", self.address.port
        if self.tls is None:
            return http.client.HTTPConnection(host, port, timeout=seconds)
        return http.client.HTTPSConnection(host, port, timeout=seconds, context=self.tls)

    def _body(self, response: http.client.HTTPResponse, until: float) -> bytes:
        """All of it; a server that sends little and slowly ends with the time, one that sends much with the size."""
        body = bytearray()
        while True:
            chunk = response.read1(_CHUNK)
            if not chunk:
                return bytes(body)
            body += chunk
            if len(body) > self.limits["answer_bytes"]:
                raise Failed(f"the answer is larger than {self.limits['answer_bytes']} bytes")
            if time.monotonic() > until:
                raise Failed(f"no complete answer within {self.limits['query_seconds']} s")


def _series(data: Any) -> list[Any]:  # noqa: ANN401 - JSON
    """Every kind of result in one form."""
    try:
        kind, result = data["resultType"], data["result"]
        if kind == "matrix":
            return [[one["metric"], one["values"]] for one in result]
        if kind == "vector":
            return [[one["metric"], [one["value"]]] for one in result]
        if kind == "scalar":
            return [[{}, [result]]]
    except (KeyError, TypeError) as error:
        raise Failed("Prometheus' answer does not have the documented format") from error
    raise Failed(f"the answer is not a series of numbers: {str(kind)[:40]}")


def _line(asker: Asker, number: int, query: dict[str, Any]) -> str:
    try:
        line = json.dumps({"n": number, "series": asker.series(query)}, separators=(",", ":"))
        with asker.lock:
            asker.left -= len(line)
            if asker.left < 0:
                raise Failed(f"the answers together are larger than {asker.limits['bytes']} bytes")
    except Failed as error:
        silent = {"silent": True} if isinstance(error, Silent) else {}
        line = json.dumps({"n": number, "error": str(error), **silent})
    return line


def main() -> None:
    """Every query's line; the process ends when its time is up, even if Prometheus hangs."""
    document = json.load(sys.stdin)
    asker = Asker(document)
    out = threading.Lock()

    def answer(number: int, query: dict[str, Any]) -> None:
        line = _line(asker, number, query)
        with out:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    executor = ThreadPoolExecutor(AT_ONCE)
    running = [executor.submit(answer, number, query) for number, query in enumerate(document["queries"])]
    for one in running:
        one.result()


if __name__ == "__main__":
    main()
