"""The server: who is let in, what a scrape gets, and that scrapes ask Slurm nothing. Real sockets, real TLS."""

from __future__ import annotations

import base64
import http.client
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

import bcrypt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from rackwright.workload.slurm.metrics import access as access_module
from rackwright.workload.slurm.metrics import server as program
from rackwright.workload.slurm.metrics import snapshot
from rackwright.workload.slurm.metrics.access import Access, Refused, parse_web
from rackwright.workload.slurm.metrics.collector import Collector, collected
from rackwright.workload.slurm.metrics.collector import Settings as Collecting
from rackwright.workload.slurm.metrics.server import Server, Settings, answer, settings_of
from rackwright.workload.slurm.metrics.snapshot import Snapshot
from tests.unit.workload.slurm_metrics.answers import FakeSlurm, of, samples

PASSWORD = "correct horse: battery"
HASH = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()


def certificate(folder, name="127.0.0.1"):
    """A certificate that signs itself, and its key; returns the serial number."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(serial := x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    for path, data in (
        ("tls.crt", made.public_bytes(serialization.Encoding.PEM)),
        (
            "tls.key",
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
        ),
    ):
        (folder / f"{path}.new").write_bytes(data)
        os.replace(folder / f"{path}.new", folder / path)
    return serial


def web_yml(folder, users, *, tls=True):
    lines = ["# written by rackwright"]
    if tls:
        lines += ["tls_server_config:", f"  cert_file: {folder}/tls.crt", f"  key_file: {folder}/tls.key"]
    lines += ["basic_auth_users:", *(f"  {name}: {one}" for name, one in users.items())]
    (folder / "web.yml.new").write_text("\n".join(lines) + "\n")
    os.replace(folder / "web.yml.new", folder / "web.yml")
    return str(folder / "web.yml")


@contextmanager
def serving(folder, stale=90.0) -> Iterator[Server]:
    server = Server(Settings("127.0.0.1", 0, str(folder / "web.yml"), str(folder / "metrics"), stale))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def get(server, password=PASSWORD, path="/metrics", method="GET", user="prometheus", headers=None):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", server.server_port, context=context, timeout=20)
    if headers is None:
        word = base64.b64encode(f"{user}:{password}".encode()).decode()
        headers = {"Authorization": f"Basic {word}"}
    try:
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        return reply.status, reply.read(), reply
    finally:
        connection.close()


@pytest.fixture
def site(tmp_path):
    certificate(tmp_path)
    web_yml(tmp_path, {"prometheus": HASH})
    snapshot.write(
        str(tmp_path / "metrics"), Snapshot(time.monotonic(), time.monotonic(), None, b"slurm_nodes 3.0\n")
    )
    return tmp_path


def test_a_scrape(site):
    with serving(site) as server:
        status, body, reply = get(server)
    assert status == 200
    assert reply.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = samples(body)
    assert found["slurm_nodes", ()] == 3
    assert found["slurm_up", ()] == 1
    assert 0 <= found["slurm_scrape_age_seconds", ()] < 20
    assert "Python" not in reply.headers["Server"]


def test_a_head_request_and_other_paths(site):
    with serving(site) as server:
        status, body, reply = get(server, method="HEAD")
        assert (status, body) == (200, b"")
        assert int(reply.headers["Content-Length"]) > 100
        assert get(server, path="/metrics?name[]=slurm_up")[0] == 200
        assert get(server, path="/")[0] == 404
        assert get(server, path="/../etc/passwd")[0] == 404
        assert get(server, method="POST")[0] == 501


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Basic"},
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic " + base64.b64encode(b"prometheus").decode()},
        {"Authorization": "Basic " + base64.b64encode(b"prometheus:").decode()},
        {"Authorization": "Basic " + base64.b64encode(f"prometheus:{PASSWORD}x".encode()).decode()},
        {"Authorization": "Basic " + base64.b64encode(f"root:{PASSWORD}".encode()).decode()},
        {"Authorization": "Basic " + base64.b64encode(b"\xff\xfe:\x00").decode()},
        {"Authorization": "Basic " + base64.b64encode(b"prometheus:a\x00b").decode()},
        {"Authorization": f"Bearer {PASSWORD}"},
    ],
)
def test_nobody_else_is_let_in(site, headers):
    with serving(site) as server:
        assert get(server)[0] == 200
        status, body, reply = get(server, headers=headers)
        assert (status, body) == (401, b"Unauthorized\n")
        assert reply.headers["WWW-Authenticate"] == 'Basic realm="metrics"'
        assert get(server, path="/", headers=headers)[0] == 401


def test_the_hash_itself_lets_nobody_in(site):
    with serving(site) as server:
        assert get(server, password=HASH)[0] == 401


def test_another_password_counts_from_the_next_connection_on(site):
    with serving(site) as server:
        assert get(server)[0] == 200
        web_yml(site, {"prometheus": bcrypt.hashpw(b"new", bcrypt.gensalt(4)).decode()})
        assert get(server)[0] == 401, "what was let in before is not remembered past the change"
        assert get(server, password="new")[0] == 200


def test_another_certificate_counts_from_the_next_connection_on(site):
    def serial():
        pem = ssl.get_server_certificate(("127.0.0.1", server.server_port), timeout=20)
        return x509.load_pem_x509_certificate(pem.encode()).serial_number

    with serving(site) as server:
        first = serial()
        second = certificate(site)
        assert (serial(), first == second) == (second, False)


def test_a_broken_change_leaves_what_was_there(site, capfd):
    with serving(site) as server:
        (site / "web.yml").write_text("basic_auth_users: {}\n")
        assert get(server)[0] == 200
        (site / "web.yml").unlink()
        assert get(server)[0] == 200
    said = capfd.readouterr().err
    assert "it has no basic_auth_users, so every request is refused" in said
    assert "No such file or directory" in said


def test_a_certificate_without_its_key_leaves_what_was_there(site):
    with serving(site) as server:
        (site / "tls.key").write_text("half\n")
        assert get(server)[0] == 200


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it has no basic_auth_users, so every request is refused"),
        ("[]", "it has no basic_auth_users, so every request is refused"),
        ("basic_auth_users: x", "it has no basic_auth_users, so every request is refused"),
        ("a: [", "not YAML: ParserError"),
        (
            "{basic_auth_users: {a: b}, tls_server_config: {cert_file: /x}}",
            "tls_server_config needs cert_file and key_file",
        ),
        (
            "{basic_auth_users: {a: b}, tls_server_config: []}",
            "tls_server_config needs cert_file and key_file",
        ),
    ],
)
def test_a_configuration_that_is_refused(text, sentence, tmp_path):
    with pytest.raises(Refused) as error:
        parse_web(text)
    assert str(error.value) == sentence
    (tmp_path / "web.yml").write_text(text)
    with pytest.raises(SystemExit) as ended:
        program.main(
            [
                "--web.listen-address=127.0.0.1:0",
                f"--web.config.file={tmp_path}/web.yml",
                "--snapshot=x",
                "--stale-seconds=1",
            ]
        )
    assert str(ended.value) == sentence


def test_a_hash_that_is_none(tmp_path):
    access = Access(web_yml(tmp_path, {"prometheus": "secret"}, tls=False))
    assert access.context is None
    assert not access.admits("Basic " + base64.b64encode(b"prometheus:secret").decode())


def test_a_password_is_hashed_once_and_guesses_one_after_the_other(tmp_path, monkeypatch):
    access = Access(web_yml(tmp_path, {"prometheus": HASH}, tls=False))
    at_once, most, hashed = 0, 0, 0

    def checkpw(password, wanted):
        nonlocal at_once, most, hashed
        at_once, hashed = at_once + 1, hashed + 1
        most = max(most, at_once)
        time.sleep(0.002)
        at_once -= 1
        return password == PASSWORD.encode()

    monkeypatch.setattr(access_module.bcrypt, "checkpw", checkpw)
    good = "Basic " + base64.b64encode(f"prometheus:{PASSWORD}".encode()).decode()
    assert all(access.admits(good) for _ in range(50))
    assert hashed == 1
    with ThreadPoolExecutor(8) as pool:
        guesses = (
            "Basic " + base64.b64encode(f"prometheus:{number}".encode()).decode() for number in range(40)
        )
        assert not any(pool.map(access.admits, guesses))
    assert (hashed, most) == (41, 1)


def test_an_unknown_user_costs_a_hash_too(tmp_path):
    assert bcrypt.checkpw(b"", access_module._UNKNOWN) is False
    access = Access(web_yml(tmp_path, {"prometheus": HASH}, tls=False))
    assert not access.admits("Basic " + base64.b64encode(b"eve:").decode())


def test_scrapes_ask_slurm_nothing(site):
    """However many there are, and all at once: the collector alone asks, once in an interval."""
    slurm, last = FakeSlurm.of("busy"), Snapshot(0.0)
    collector = Collector(Collecting("x", accounting_interval=0), slurm)
    with serving(site) as server, ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            last = collected(collector, last)
            snapshot.write(str(site / "metrics"), last)
            replies = list(pool.map(lambda _: get(server), range(16)))
            assert {status for status, _, _ in replies} == {200}
            assert {len(of(samples(body), "slurm_job_gpu")) for _, body, _ in replies} == {4}
    assert slurm.asked == {"nodes": 3, "jobs": 3, "scheduler": 3, "details": 1}


def test_a_scrape_never_sees_half_a_snapshot(site):
    bodies = [f"slurm_nodes {number}.0\n".encode() * 20_000 + b"# end\n" for number in range(2)]
    stop, begun = threading.Event(), threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            number = 1 - number
            snapshot.write(str(site / "metrics"), Snapshot(0.0, time.monotonic(), None, bodies[number]))
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(20)
        for _ in range(200):
            told = answer(str(site / "metrics"), 90, time.monotonic())
            assert told.startswith(tuple(bodies))
            assert told.partition(b"# end\n")[2].startswith(b"# HELP slurm_up")
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize(
    ("given", "up", "age", "shown"),
    [
        (Snapshot(100.0, 100.0, None, b"slurm_nodes 3.0\n"), 1, 10, True),
        (Snapshot(109.0, 100.0, "no answer", b"slurm_nodes 3.0\n"), 0, 10, True),
        (Snapshot(20.0, 20.0, None, b"slurm_nodes 3.0\n"), 1, 90, True),
        (Snapshot(19.0, 19.0, None, b"slurm_nodes 3.0\n"), 0, 91, False),
        (Snapshot(109.0, 19.0, "no answer", b"slurm_nodes 3.0\n"), 0, 91, False),
        (Snapshot(109.0, None, "no answer"), 0, None, False),
        (None, 0, None, False),
    ],
)
def test_old_figures_are_not_shown(tmp_path, given, up, age, shown):
    path = str(tmp_path / "metrics")
    if given is not None:
        snapshot.write(path, given)
    found = samples(answer(path, 90, 110.0))
    assert found["slurm_up", ()] == up
    assert found.get(("slurm_scrape_age_seconds", ())) == age
    assert (("slurm_nodes", ()) in found) is shown


def test_clients_that_send_nothing_hold_up_nobody(site):
    with serving(site) as server:
        silent = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(8)]
        assert get(server)[0] == 200
        for one in silent:
            one.close()


def test_plain_http_gets_nothing(site):
    with (
        serving(site) as server,
        socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as plain,
    ):
        plain.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        with suppress(ConnectionError):
            assert b"slurm" not in plain.recv(1000)
        assert get(server)[0] == 200


def test_a_connection_ends_after_a_while_whatever_it_sends(site, monkeypatch):
    monkeypatch.setattr(program, "_WHOLE_SECONDS", 0.5)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        serving(site) as server,
        socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as raw,
    ):
        with context.wrap_socket(raw) as slow:
            slow.sendall(b"GET /metrics HTTP/1.0\r\n")
            begin = time.monotonic()
            with suppress(ConnectionError, ssl.SSLError):
                assert slow.recv(1) == b""
            assert time.monotonic() - begin < 9, "before it would have been given up for its silence"
        assert get(server)[0] == 200


def test_a_handshake_that_never_ends_is_ended(site, monkeypatch):
    monkeypatch.setattr(program, "_WHOLE_SECONDS", 0.5)
    with (
        serving(site) as server,
        socket.create_connection(("127.0.0.1", server.server_port), timeout=0.1) as raw,
    ):
        raw.sendall(b"\x16\x03\x01\x40\x00")  # the head of a record of 16 KiB
        ended, until = False, time.monotonic() + 9
        while not ended and time.monotonic() < until:
            try:
                raw.sendall(b"\x00")
                ended = raw.recv(1) == b""
            except TimeoutError:
                continue
            except ConnectionError:
                ended = True
        assert ended, "before it would have been given up for its silence"


def test_a_connection_that_cannot_be_served_leaves_its_place_to_others(site, monkeypatch):
    def dup(_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(program, "_CONNECTIONS", 1)
    with serving(site) as server:
        with monkeypatch.context() as broken:
            broken.setattr(socket.socket, "dup", dup)
            refused = socket.create_connection(("127.0.0.1", server.server_port), timeout=20)
            with refused, suppress(ConnectionError):
                assert refused.recv(1) == b""
        assert get(server)[0] == 200


def test_connections_beyond_the_limit_are_closed(site, monkeypatch):
    monkeypatch.setattr(program, "_CONNECTIONS", 2)
    with serving(site) as server:
        held = [socket.create_connection(("127.0.0.1", server.server_port), timeout=20) for _ in range(2)]
        deadline = time.monotonic() + 10
        while server._places._value and time.monotonic() < deadline:
            time.sleep(0.01)
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as more:
            assert more.recv(1) == b""
        for one in held:
            one.close()
        while time.monotonic() < deadline:
            try:
                if get(server)[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)
    pytest.fail("the places of connections that ended are not free again")


def test_without_a_certificate_it_speaks_http(site):
    web_yml(site, {"prometheus": HASH}, tls=False)
    with serving(site) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
        connection.request("GET", "/metrics")
        assert connection.getresponse().status == 401
        connection.close()


def test_the_command_line_is_that_of_exporters():
    assert settings_of(
        ["--web.listen-address=10.0.0.10:9341", "--web.config.file=/w", "--snapshot=/s", "--stale-seconds=98"]
    ) == Settings("10.0.0.10", 9341, "/w", "/s", 98)
