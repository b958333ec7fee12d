"""The gate before the receiver of lines: with real TLS, who gets in, as whom, and who does not."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import pytest

from rackwright.certificates.read import pem
from rackwright.logs import gate
from rackwright.logs.sources import Sources
from rackwright.secrets.secret import generate
from tests.unit.certificates.authorities import issuer

CA, OTHER_CA = issuer(), issuer(generate("site_ca_key"), organization="other")


class Receiver:
    """In the place of systemd-journal-remote: what came, and from which address."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.got = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with suppress(OSError):  # it was closed
            while True:
                connection, peer = self.listening.accept()
                threading.Thread(target=self._one, args=(connection, peer[0]), daemon=True).start()

    def _one(self, connection, address):
        data = b""
        with connection:
            while not data.endswith(b"\n"):
                more = connection.recv(1 << 16)
                if not more:
                    return
                data += more
            self.got.append((address, data))
            connection.sendall(b"202 OK %d\n" % len(data))
            connection.recv(1)


class World:
    """A gate that runs, and certificates of everyone."""

    def __init__(self, tmp_path) -> None:
        self.path = tmp_path
        self.receiver = Receiver()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = self.listening.getsockname()
        self.settings = {
            "nodes": ["w1", "w2"],
            "ca": self.file("ca.crt", pem(CA.certificate)),
            **dict(zip(("chain", "key"), self.issue("server", ["head1", "127.0.0.1"]), strict=True)),
            "receiver": "127.0.0.1",
            "receiver_port": self.receiver.listening.getsockname()[1],
            "sources": str(tmp_path / "sources.json"),
            "at_once": 2,
        }
        self.loop = asyncio.new_event_loop()
        self.task = self.loop.create_task(gate.run(self.settings, self.listening))
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        asyncio.set_event_loop(self.loop)
        with suppress(asyncio.CancelledError):
            self.loop.run_until_complete(self.task)
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self.loop.close()

    def end(self):
        with suppress(OSError):
            self.receiver.listening.shutdown(socket.SHUT_RDWR)
        self.receiver.listening.close()
        self.loop.call_soon_threadsafe(self.task.cancel)
        self.thread.join(10)

    def file(self, name, text):
        (self.path / name).write_text(text)
        return str(self.path / name)

    def issue(self, name, names, ca=CA):
        """(chain, key) of a certificate."""
        made = ca.issue(names, datetime.now(UTC))
        return self.file(f"{name}.crt", made.chain), self.file(f"{name}.key", made.key)

    @contextmanager
    def connected(self, certificate=None):
        context = ssl.create_default_context(cafile=self.settings["ca"])
        if certificate is not None:
            context.load_cert_chain(*certificate)
        with (
            socket.create_connection(self.address, timeout=10) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as tls,
        ):
            yield tls

    def send(self, certificate, data=b"line\n"):
        """What the receiver answers; b"" where the gate closes the connection."""
        with self.connected(certificate) as tls:
            try:
                tls.sendall(data)
                return tls.recv(100)
            except (ssl.SSLError, ConnectionError):
                return b""


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.end()


def test_a_node_sends_from_an_address_of_its_own(world):
    one, two = world.issue("w1", ["w1", "w1.example.com"]), world.issue("w2", ["w2"])
    big = b"x" * 3_000_000 + b"\n"
    assert world.send(one, big) == b"202 OK 3000001\n"
    assert world.send(two) == b"202 OK 5\n"
    assert world.send(one) == b"202 OK 5\n"
    assert [address for address, _ in world.receiver.got] == ["127.1.0.1", "127.1.0.2", "127.1.0.1"]
    assert world.receiver.got[0][1] == big
    assert json.loads((world.path / "sources.json").read_text()) == {"w1": 1, "w2": 2}


@pytest.mark.parametrize("who", ["nobody", "another CA", "another service", "a removed node", "no name"])
def test_nobody_else_gets_in(world, who, capfd):
    certificate = {
        "nobody": lambda: None,
        "another CA": lambda: world.issue("x", ["w1"], OTHER_CA),
        "another service": lambda: world.issue("x", ["w1.example.com", "w1"]),
        "a removed node": lambda: world.issue("x", ["w3"]),
        "no name": lambda: world.issue("x", ["w" * 65]),
    }[who]()
    assert world.send(certificate) == b""
    assert world.receiver.got == []
    assert not (world.path / "sources.json").exists()


def test_plain_text_is_not_spoken(world):
    with socket.create_connection(world.address, timeout=10) as plain:
        plain.sendall(b"POST /upload HTTP/1.1\r\n\r\n")
        assert not plain.recv(100).startswith(b"HTTP")
    assert world.receiver.got == []


def test_a_node_holds_so_many_connections_and_others_still_come(world, capfd):
    one, two = world.issue("w1", ["w1"]), world.issue("w2", ["w2"])
    with world.connected(one) as first, world.connected(one) as second:
        for tls in (first, second):
            tls.sendall(b"a\n")
            assert tls.recv(100)
        assert world.send(one) == b""
        assert world.send(two) == b"202 OK 5\n"
    until = time.monotonic() + 10
    while world.send(one) == b"":  # the gate has seen the others end
        assert time.monotonic() < until
    assert "refused w1: it already has 2 connections" in capfd.readouterr().out


def test_who_is_refused_is_noted_once(world, capfd):
    stranger = world.issue("x", ["head1"])
    for _ in range(3):
        assert world.send(stranger) == b""
    until = time.monotonic() + 10
    said = ""
    while "refused" not in said and time.monotonic() < until:
        said += capfd.readouterr().out
    assert said.count("refused 'head1' from 127.0.0.1: not a node of the cluster") == 1


def test_a_receiver_that_is_away(world, capfd):
    world.receiver.listening.shutdown(socket.SHUT_RDWR)
    world.receiver.listening.close()
    assert world.send(world.issue("w1", ["w1"])) == b""
    assert "w1: the receiver does not accept its lines" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("certificate", "name"),
    [
        (None, None),
        ({}, None),
        ({"subject": ((("commonName", "w1"),),)}, "w1"),
        ({"subject": ((("organizationName", "x"),), (("commonName", "w1"),))}, "w1"),
        ({"subject": ((("commonName", "w1"),), (("commonName", "w2"),))}, None),
    ],
)
def test_the_subject_of_a_certificate(certificate, name):
    assert gate.subject(certificate) == name


def test_the_program_needs_systemd_s_socket(monkeypatch):
    monkeypatch.delenv("LISTEN_FDS", raising=False)
    with pytest.raises(SystemExit, match="no socket from systemd: start it through its socket unit"):
        gate.main()


def test_addresses_are_given_once(tmp_path):
    path = str(tmp_path / "sources.json")
    made = Sources(path)
    assert [made.address(node) for node in ("a", "b", "a")] == ["127.1.0.1", "127.1.0.2", "127.1.0.1"]
    again = Sources(path)
    assert [again.address(node) for node in ("c", "b")] == ["127.1.0.3", "127.1.0.2"]


@pytest.mark.parametrize(
    "text", ['{"a": 0}', '{"a": "1"}', "[1]", '{"a": 1, "b": 1}', '{"a": 99999999}', "{"]
)
def test_a_damaged_table_is_not_begun_anew(tmp_path, text):
    (tmp_path / "sources.json").write_text(text)
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own words
        Sources(str(tmp_path / "sources.json"))
