"""The HTTPS server, with the agent's own client and with those that mean no good."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import time
from ipaddress import IPv4Address

import pytest

from rackwright.install import listener as connections
from rackwright.install import server as module
from rackwright.install.agent import client
from rackwright.install.agent.client import Head, Refused
from rackwright.install.authority import credentials
from rackwright.install.server import Server
from rackwright.install.states import State
from tests.unit.install.site import HOST_KEY, IMAGE, disk, document, make_image
from tests.unit.install.test_desk import Desk1

HERE = IPv4Address("127.0.0.1")


class Running:
    """The server of a desk, on a port of its own."""

    def __init__(self, desk, folder):
        keys = credentials("test", frozenset((HERE,)))
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        self.port = listener.getsockname()[1]
        self.ca = folder / "ca.pem"
        self.ca.write_bytes(keys.ca)
        self.server = Server(desk, [listener], keys.chain)

    def head(self, token, patience=0.0):
        server = f"https://127.0.0.1:{self.port}"
        return Head(server, token, str(self.ca), patience=patience, sleep=lambda _: None)

    def ask(self, method, path, body=None, **headers):
        context = ssl.create_default_context(cafile=self.ca)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=5, context=context)
        with contextlib.closing(connection):
            connection.request(
                method, path, body, {key.replace("_", "-"): text for key, text in headers.items()}
            )
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()


@pytest.fixture
def image(tmp_path):
    return make_image(tmp_path / "image")


@pytest.fixture
def desk(image):
    return Desk1(image)


@pytest.fixture
def running(desk, tmp_path, monkeypatch):
    monkeypatch.setattr(client, "log", lambda text: None)
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    running = Running(desk.desk, tmp_path)
    yield running
    running.server.close()


def test_a_whole_conversation_of_the_agents_own_client(desk, running):
    head = running.head(desk.token)
    assert abs(head.hello({"version": 1, "serial": "SN-1"}) - time.time()) < 5
    with pytest.raises(Refused, match="/v1/image: the head answered 403"):
        next(head.image(len(IMAGE)))
    answer = head.post("/v1/inventory", document())
    assert answer["action"] == "install"
    assert b"".join(head.image(len(IMAGE))) == IMAGE
    head.post("/v1/progress", {"phase": "image", "percent": 100})
    head.post("/v1/done", {"run": "r1", "host_keys": {"ed25519": HOST_KEY}})
    assert desk.state is State.INSTALLED
    with pytest.raises(Refused, match="403"):
        next(head.image(len(IMAGE)))


def test_a_token_that_is_spent_is_refused_and_not_asked_with_again(desk, running):
    running.head(desk.token).hello({})
    with pytest.raises(Refused, match=r"403.*the token is unknown, already used or expired"):
        running.head(desk.token).hello({})


def test_an_image_is_resumed_where_it_broke_off(desk, running, monkeypatch):
    head = running.head(desk.token, patience=30.0)
    head.hello({})
    head.post("/v1/inventory", document())
    real, asked = Head._blocks, []

    def breaking(self, position, size):
        asked.append(position)
        for block in real(self, position, size):
            yield block[:5000]
            if len(asked) < 3:
                raise ConnectionResetError("broken")

    monkeypatch.setattr(client, "_BLOCK", 5000)
    monkeypatch.setattr(Head, "_blocks", breaking)
    assert b"".join(head.image(len(IMAGE))) == IMAGE
    assert asked == [0, 5000, 10000]


def bearer(desk, running):
    head = running.head(desk.token)
    head.hello({})
    head.post("/v1/inventory", document())
    return f"Bearer {head._secret}"


RANGES = [
    (None, 200, None, IMAGE),
    ("bytes=0-", 206, "bytes 0-16383/16384", IMAGE),
    ("bytes=16383-", 206, "bytes 16383-16383/16384", IMAGE[-1:]),
    ("bytes=100-199", 206, "bytes 100-199/16384", IMAGE[100:200]),
    ("bytes=100-99999", 206, "bytes 100-16383/16384", IMAGE[100:]),
    ("bytes=16384-", 416, "bytes */16384", b""),
    ("bytes=99999999999999999999-", 200, None, IMAGE),
    ("bytes=-5", 200, None, IMAGE),
    ("bytes=1-2,5-6", 200, None, IMAGE),
    ("lines=1-2", 200, None, IMAGE),
]


def test_ranges(desk, running):
    session = {"Authorization": bearer(desk, running)}
    for asked, status, shown, body in RANGES:
        headers = session | ({"Range": asked} if asked else {})
        found = running.ask("GET", "/v1/image", **headers)
        assert (found[0], found[1].get("Content-Range"), found[2]) == (status, shown, body), asked
        head = running.ask("HEAD", "/v1/image", **headers)
        assert (head[0], head[1].get("Content-Range"), head[2]) == (status, shown, b""), asked
        assert head[1]["Content-Length"] == found[1]["Content-Length"] == str(len(body))


def test_the_image_is_for_one_whose_node_is_installing(desk, running):
    assert running.ask("GET", "/v1/image")[0] == 403
    head = running.head(desk.token)
    head.hello({})
    session = f"Bearer {head._secret}"
    for scheme in (session, f"Basic {head._secret}", head._secret, "Bearer", "Bearer "):
        assert running.ask("GET", "/v1/image", Authorization=scheme)[0] == 403
    assert head.post("/v1/inventory", document(1, disk(signatures=["x:gpt:"])))["action"] == "wait"
    assert running.ask("GET", "/v1/image", Authorization=session)[0] == 403
    head.post("/v1/inventory", document())
    assert running.ask("GET", "/v1/image", Authorization=session)[0] == 200
    head.post("/v1/failed", {"error": "odd"})
    assert running.ask("GET", "/v1/image", Authorization=session)[0] == 403


def test_a_medium_is_served_at_its_random_path_only(desk, running, tmp_path):
    (tmp_path / "worker1.iso").write_bytes(b"an ISO")
    desk.case.media["/media/abc.iso"] = tmp_path / "worker1.iso"
    assert running.ask("GET", "/media/abc.iso")[::2] == (200, b"an ISO")
    assert running.ask("HEAD", "/media/abc.iso")[1]["Content-Length"] == "6"
    assert running.ask("GET", "/media/abc.iso", Range="bytes=3-")[::2] == (206, b"ISO")
    assert running.ask("GET", "/media/abc.iso?x=1")[0] == 200
    desk.case.media.clear()
    assert running.ask("GET", "/media/abc.iso")[0] == 404


def test_a_medium_whose_file_is_gone(desk, running, tmp_path):
    desk.case.media["/media/abc.iso"] = tmp_path / "gone.iso"
    assert running.ask("GET", "/media/abc.iso")[0] == 404


PATHS = ["/", "/media", "/media/", "/media/worker1.iso", "/../../etc/passwd", "//etc/passwd", "/ca.key", "/index.html", "/%2e%2e/ca.key"]  # fmt: skip


def test_nothing_is_listed(running):
    for path in PATHS:
        for method in ("GET", "HEAD"):
            status, headers, body = running.ask(method, path)
            assert (status, body) == (404, b"" if method == "HEAD" else b'{"error": "not here"}'), path
            assert headers["Server"].strip() == "rackwright"
        assert running.ask("POST", path, b"{}")[0] == 403, path


def test_other_methods(running):
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "odd"):
        assert running.ask(method, "/v1/image")[0] == 501


def test_other_calls(desk, running):
    assert running.ask("GET", "/v1/hello")[0] == 403
    assert running.ask("POST", "/v1/shell", b"{}", Authorization=bearer(desk, running))[0] == 404


def test_a_body_that_is_not_a_document(desk, running):
    for body in (b"x", b"[]", b"7", b"{", b"\xff\xfe", b'{"a":NaN}', b"[" * 90_000):
        assert running.ask("POST", "/v1/hello", body, Authorization=f"Bearer {desk.token}")[0] == 400
    assert desk.state is State.ARMED


@pytest.mark.parametrize("length", [str(4 * 2**20 + 1), "9" * 30, "-1", "x", "²", "1_0"])
def test_a_body_that_is_too_large_is_not_read(running, length):
    context = ssl.create_default_context(cafile=running.ca)
    with (
        socket.create_connection(("127.0.0.1", running.port), 5) as raw,
        context.wrap_socket(raw, server_hostname="127.0.0.1") as secure,
    ):
        secure.sendall(f"POST /v1/hello HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode("latin-1"))
        answer = b"".join(iter(lambda: secure.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_an_answer_that_cannot_be_written_down_is_asked_for_again(desk, running, monkeypatch):
    """The journal's disk is full: 503, and nothing of the head's is shown."""

    def full(*_, **__):
        raise OSError(28, "full", "/secret/place")

    with monkeypatch.context() as patched:
        patched.setattr(desk.journal, "move", full)
        hello = json.dumps({"session": "a" * 48}).encode()
        status, _, body = running.ask("POST", "/v1/hello", hello, Authorization=f"Bearer {desk.token}")
    assert (status, json.loads(body)) == (503, {"error": "the head cannot answer now"})
    running.head(desk.token).hello({})


def test_only_tls_and_only_with_the_ca(desk, running, tmp_path):
    with pytest.raises(client.AgentError, match="CERTIFICATE_VERIFY_FAILED"):
        Head(f"https://127.0.0.1:{running.port}", desk.token, ssl.get_default_verify_paths().cafile or str(_other_ca(tmp_path)), patience=-1).hello({})  # fmt: skip
    with socket.create_connection(("127.0.0.1", running.port), 5) as plain:
        plain.sendall(b"GET /v1/image HTTP/1.1\r\n\r\n")
        answer = b"".join(iter(lambda: plain.recv(4096), b""))
    assert b"HTTP" not in answer
    assert desk.state is State.ARMED
    running.head(desk.token).hello({})


def _other_ca(folder):
    (folder / "other.pem").write_bytes(credentials("other", frozenset((HERE,))).ca)
    return folder / "other.pem"


def _waiting(port, count, data=b""):
    """Connections that say nothing more."""
    made = []
    for _ in range(count):
        one = socket.create_connection(("127.0.0.1", port), 5)
        one.sendall(data)
        made.append(one)
    return made


def _until(true, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.005)
    return true()


def test_connections_that_say_nothing_keep_no_agent_waiting(desk, running):
    """Each has its own thread from the handshake on."""
    waiting = _waiting(running.port, 20) + _waiting(running.port, 20, b"\x16\x03\x01")
    running.head(desk.token).hello({})
    for one in waiting:
        one.close()


def test_there_are_so_many_of_one_address(desk, running, monkeypatch):
    monkeypatch.setattr(connections, "_OF_ONE_ADDRESS", 10)
    places = running.server._servers[0]._places
    waiting = _waiting(running.port, 15)
    assert _until(lambda: places._open.total() == 10)
    assert all(one.recv(1) == b"" for one in waiting[10:]), "the others are closed at once"
    with pytest.raises((OSError, client.AgentError)):
        running.head(desk.token).post("/v1/hello", {}, patience=-1)
    for one in waiting:
        one.close()
    assert _until(lambda: not places._open)
    running.head(desk.token).hello({})


def test_and_so_many_in_all(monkeypatch):
    monkeypatch.setattr(connections, "_CONNECTIONS", 3)
    places = connections.Places()
    assert [places.take(address) for address in "abcd"] == [True, True, True, False]
    places.leave("a")
    assert places.take("d")


def test_one_that_is_idle_is_closed(desk, running, monkeypatch):
    monkeypatch.setattr(connections, "_IDLE_SECONDS", 0.05)
    monkeypatch.setattr(connections.FileHandler, "timeout", 0.05)
    for one in _waiting(running.port, 3) + _waiting(running.port, 3, b"\x16\x03\x01"):
        assert one.recv(1) == b""
        one.close()
    assert _until(lambda: not running.server._servers[0]._places._open)


def test_a_server_that_is_closed_answers_no_more(desk, image, tmp_path):
    running = Running(desk.desk, tmp_path)
    running.server.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", running.port), 1)
