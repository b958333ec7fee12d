"""Loki's reader against a Loki that fits on a page: what it asks, in which pages, and what it makes of the answers."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest

from rackwright.certificates.read import pem
from rackwright.logs import read_loki
from rackwright.logs.answer import Unreadable, answer
from rackwright.logs.entries import Wanted
from tests.unit.certificates.authorities import issuer
from tests.unit.logs.journals import T0

XID = "NVRM: Xid (PCI:0000:8b:00): 79, pid=4711, name=python3, GPU has fallen off the bus."


class Loki:
    """Streams of lines; `asked` has each query."""

    def __init__(self) -> None:
        self.lines, self.asked, self.reply = [], [], None
        self.recent = []

    def add(self, at, message, node="w1", **labels):
        self.lines.append((int((T0 + at) * 1e9), message, {"node": node, **labels}))

    def answer(self, path, form):
        self.asked.append((path, form))
        if self.reply is not None:
            return self.reply
        if path.endswith("/query"):
            result = [{"metric": {"node": node}, "value": [T0, "3"]} for node in self.recent]
            return 200, {"status": "success", "data": {"resultType": "vector", "result": result}}
        start, end = int(form.get("start", 0)), int(form.get("end", 1 << 62))
        found = sorted((one for one in self.lines if start <= one[0] < end), key=lambda one: -one[0])
        result = [
            {"stream": labels, "values": [[str(at), message]]}
            for at, message, labels in found[: int(form["limit"])]
        ]
        return 200, {"status": "success", "data": {"resultType": "streams", "result": result}}


@pytest.fixture
def loki():
    made = Loki()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {key: values[0] for key, values in parse_qs(body).items()}
            status, said = made.answer(self.path, form)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode() if not isinstance(said, str) else said.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture
def ask(loki, tmp_path):
    ca = issuer()
    made = ca.issue(["w1"], datetime.now(UTC))
    for name, text in (("ca", pem(ca.certificate)), ("crt", made.chain), ("key", made.key)):
        (tmp_path / name).write_text(text)
    store = {
        "url": loki.url,
        "ca": str(tmp_path / "ca"),
        "certificate": str(tmp_path / "crt"),
        "key": str(tmp_path / "key"),
    }

    def call(*, of_store=(), **changes):
        request = {
            "store": {**store, **dict(of_store)},
            "nodes": ["w1", "w2"],
            "since": T0,
            "until": T0 + 1000,
            "lines": 100,
            "seconds": 60,
            **changes,
        }
        return answer(request, read_loki.read, read_loki.last)

    return call


def test_lines_with_what_their_metadata_says(loki, ask):
    loki.add(
        2,
        XID,
        kernel="yes",
        priority="2",
        facility="0",
        unit="",
        systemd_unit="",
    )
    loki.add(
        1,
        "Accepted publickey",
        "w2",
        unit="ssh.service",
        systemd_unit="ssh.service",
        name="sshd" * 1000,
        pid="9",
        uid="0",
    )
    loki.recent = ["w2"]
    found = ask()
    assert [(one["node"], one["message"], one["unit"]) for one in found["lines"]] == [
        ("w2", "Accepted publickey", "ssh.service"),
        ("w1", XID, ""),
    ]
    assert found["lines"][1]["fields"] == {"kind": "xid", "device": "0000:8b:00", "code": 79}
    assert (found["lines"][0]["trusted"], len(found["lines"][0]["name"])) == (True, 1024)
    assert found["newest"] == {"w1": T0 + 2, "w2": T0 - 600}


def test_pages_until_all_is_there(loki, ask, monkeypatch):
    """Lines of one moment that are on two pages come once; a page full of one moment ends no reading."""
    monkeypatch.setattr(read_loki, "PAGE", 3)
    for number, at in enumerate([9, 8, 8, 8, 8, 7, 5]):
        loki.add(at, f"line {number}")
    found = ask()
    assert [one["message"] for one in found["lines"]] == [
        "line 6",
        "line 5",
        "line 3",
        "line 2",
        "line 1",
        "line 0",
    ]
    assert len([path for path, _ in loki.asked if path.endswith("query_range")]) < 10


@pytest.mark.parametrize(
    ("changes", "query"),
    [
        ({}, '{node=~"w1|w2"}'),
        ({"unit": "ssh.service"}, '{node=~"w1|w2", unit=~"ssh.service|init.scope"}'),
        ({"unit": "user@1000.service"}, '{node=~"w1|w2", unit=~"user@.service|init.scope"}'),
        ({"unit": "session-7.scope"}, '{node=~"w1|w2", unit=~"session.scope|init.scope"}'),
        ({"audit": True}, '{node=~"w1|w2", audit="yes"}'),
        ({"grep": 'a"b.c'}, '{node=~"w1|w2"} |~ "(?i)a\\"b\\\\.c"'),
        (
            {
                "job": {
                    "nodes": [],
                    "servers": [],
                    "units": ["u.service", "v.scope"],
                    "cgroup": "",
                    "named": "",
                    "since": 0,
                    "until": 0,
                }
            },
            '{node=~"w1|w2"} | kernel="yes" or systemd_unit=~"u\\\\.service|v\\\\.scope"',
        ),
    ],
)
def test_what_is_asked(changes, query):
    assert (
        read_loki.query_of(Wanted({"nodes": ["w2", "w1"], "since": 0, "until": 1, "lines": 1, **changes}))
        == query
    )


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((500, "too many outstanding requests"), "Loki answers 500: too many outstanding requests"),
        ((200, {"data": {}}), "Loki answers 200"),
        ((200, {"data": {"result": [{"stream": {}, "values": [["1", "x"]]}]}}), "is not a list of streams"),
        ((200, {"data": {"result": ["x"]}}), "is not a list of streams"),
        ((200, "<html>"), "Expecting value"),
    ],
)
def test_what_is_no_answer(loki, ask, reply, said):
    loki.reply = reply
    with pytest.raises(Unreadable, match=said):
        ask()


def test_a_loki_that_is_away(ask):
    with pytest.raises(Unreadable, match="Connection refused"):
        ask(of_store={"url": "http://127.0.0.1:1"})


def test_certificates_that_are_missing(ask):
    with pytest.raises(Unreadable, match="cannot read the certificates"):
        ask(of_store={"key": "/nowhere"})
