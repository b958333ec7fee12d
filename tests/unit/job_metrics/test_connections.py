"""Connections of the server of jobs' metrics: those that send nothing, too much, or too slowly keep out no user."""

from __future__ import annotations

import socket
import ssl
import threading
import time

import pytest

from rackwright.job_metrics import connections


class Answering(connections.Request):
    """Answers at once, or `/slow` when it is let go."""

    lets_go = threading.Event()

    def do_GET(self):  # noqa: N802 - http.server's name
        if self.path == "/slow":
            self.lets_go.wait(20)
        self.reply(200, {"large": len(self.headers.get("X", ""))})


@pytest.fixture
def running():
    running = connections.Server(("127.0.0.1", 0), Answering)
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def connected(running, sends=b""):
    connection = socket.create_connection(("127.0.0.1", running.server_address[1]), timeout=20)
    connection.sendall(sends)
    return connection


def asked(running, sends=b"GET / HTTP/1.0\r\n\r\n"):
    """All that a request is answered with."""
    with connected(running, sends) as connection, connection.makefile("rb") as answer:
        return answer.read()


def test_a_connection_ends_with_its_answer(running):
    assert asked(running).endswith(b'\r\n\r\n{"large": 0}')


def test_connections_that_ask_nothing_keep_out_no_user(running, monkeypatch):
    monkeypatch.setattr(connections, "UNASKED_MAX", 3)
    idle = [connected(running) for _ in range(10)]
    assert asked(running).startswith(b"HTTP/1.0 200 ")
    assert [one.recv(1) for one in idle[:7]] == [b""] * 7
    assert len(running._unasked) <= 3
    for one in idle:
        one.close()


def test_no_more_than_some_kilobytes_of_a_request_are_read(running):
    """Headers of MiB from many clients at once would take all of the server's memory."""
    sends = b"GET / HTTP/1.0\r\nX: ".ljust(connections.HEAD_BYTES, b"x")
    assert b'{"large": 8173}' in asked(running, sends)


@pytest.mark.parametrize("tls", [False, True])
def test_a_request_that_takes_too_long_is_left(running, monkeypatch, tls):
    """Whatever it sends meanwhile, be it a TLS handshake."""
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5)
    if tls:
        running.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    begin = time.monotonic()
    assert asked(running, b"\x16" if tls else b"GET / HTTP/1.0\r\n") == b""
    assert time.monotonic() - begin >= 0.4


def test_an_answer_that_takes_too_long_is_left(running, monkeypatch):
    monkeypatch.setattr(connections, "WHOLE_SECONDS", 0.5)
    assert asked(running, b"GET /slow HTTP/1.0\r\n\r\n") == b""
    assert running._open == {}
    Answering.lets_go.set()
