"""Who may deliver lines, and in whose name: a declared node with a certificate of the site's CA, in its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright.lab import network
from rackwright.lab.process import run
from rackwright.roles.logs.paths import (
    PACKAGED_SOCKET,
    RECEIVER_ADDRESS,
    RECEIVER_PORT,
    SENDER_CHAIN,
    SENDER_KEY,
    SERVER_CHAIN,
    SERVER_KEY,
)
from tests.racks.logs.lines import HEAD, found, is_as_declared, until
from tests.racks.site import Site
from tests.racks.stranger import Stranger, plugged_in

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_PORT = 19532
_DELIVER = """\
import socket, ssl, sys, time
address, port, key, chain, message = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
if chain:
    context.load_cert_chain(chain, key)
now = int(time.time() * 1e6)
fields = {
    "__REALTIME_TIMESTAMP": now, "__MONOTONIC_TIMESTAMP": now, "_BOOT_ID": "1" * 32, "_MACHINE_ID": "2" * 32,
    "_HOSTNAME": "worker2", "_UID": 0, "PRIORITY": 6, "SYSLOG_IDENTIFIER": "lo-forged", "MESSAGE": message,
}
body = "".join(f"{name}={value}\\n" for name, value in fields.items()).encode() + b"\\n"
head = f"POST /upload HTTP/1.1\\r\\nHost: x\\r\\nContent-Type: application/vnd.fdo.journal\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
try:
    with socket.create_connection((address, int(port)), 10) as plain, context.wrap_socket(plain) as connection:
        connection.sendall(head.encode() + body)
        answer = connection.recv(100).split()
    print(answer[1].decode() if answer else "refused")
except (ssl.SSLError, ConnectionError):
    print("refused")
"""


@pytest.fixture
def stranger(site: Site) -> Iterator[Stranger]:
    """A host that is not declared, in the management network."""
    with plugged_in(site, "10.96.0.200/24") as found:
        yield found


def _address(site: Site) -> str:
    return str(site.cluster.management_address(site.cluster.by_name[HEAD]))


def _deliver(site: Site, stranger: Stranger, pair: tuple[Path, Path] | None, message: str) -> str:
    key, chain = map(str, pair) if pair else ("", "")
    argv = [sys.executable, "-c", _DELIVER, _address(site), str(_PORT), key, chain, message]
    return run(network.inside(stranger.namespace, argv), timeout=60).stdout.strip()


def _fetched(site: Site, node: str, key: str, chain: str) -> tuple[Path, Path]:
    """A key and its certificate of a node, as files of this machine."""
    folder = site.folder / f"{node}-{Path(key).stem}"
    folder.mkdir(exist_ok=True)
    copies = folder / "key", folder / "chain"
    for path, copy in zip((key, chain), copies, strict=True):
        copy.write_text(site.on(node, f"cat {path}"))
        copy.chmod(0o600)
    return copies


def _self_signed(site: Site) -> tuple[Path, Path]:
    """With the name of a node."""
    key, chain = site.folder / "own.key", site.folder / "own.crt"
    make = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=worker1"
    done = site.tool("openssl", *make.split(), "-keyout", str(key), "-out", str(chain), name="openssl")
    assert done.status == 0, done
    return key, chain


@pytest.mark.smoke
def test_everything_is_as_declared_and_stays_so(site: Site):
    is_as_declared(site)


@pytest.mark.smoke
def test_only_a_certificate_of_a_node_delivers_lines(site: Site, stranger: Stranger):
    """The last one is a node's own, with its key: it shows that what the others send would be taken."""
    pairs = {
        "lo-forged without": None,
        "lo-forged self-signed": _self_signed(site),
        "lo-forged other service": _fetched(site, HEAD, SERVER_KEY, SERVER_CHAIN),
        "lo-forged worker1": _fetched(site, "worker1", SENDER_KEY, SENDER_CHAIN),
    }
    answers = [_deliver(site, stranger, pair, message) for message, pair in pairs.items()]
    assert answers == ["refused", "refused", "refused", "202"]
    until(lambda: bool(found(site, "--grep", "lo-forged worker1")), "line that was accepted")
    assert found(site, "--grep", "lo-forged") == [("worker1", "lo-forged worker1")]


def test_a_node_delivers_lines_in_its_own_name_alone(site: Site):
    """Root of worker1 claims to be worker2 in every field that names a host."""
    program = f"cat >/run/deliver.py <<'END'\n{_DELIVER}END\n"
    words = f"{_address(site)} {_PORT} {SENDER_KEY} {SENDER_CHAIN} 'lo-claims worker2'"
    assert site.on("worker1", f"{program}python3 /run/deliver.py {words}").strip() == "202"
    until(lambda: bool(found(site, "--grep", "lo-claims")), "line that was accepted")
    assert found(site, "--grep", "lo-claims") == [("worker1", "lo-claims worker2")]


def test_the_receiver_itself_cannot_be_reached(site: Site, stranger: Stranger):
    """Past the gate, lines would be taken from every address without a certificate."""
    assert stranger.connect(_address(site), _PORT) == "open"
    assert stranger.connect(_address(site), RECEIVER_PORT) != "open"
    connect = f"(exec 3<>/dev/tcp/{RECEIVER_ADDRESS}/{RECEIVER_PORT}) 2>/dev/null && echo open || echo closed"
    assert site.on(HEAD, connect).strip() == "closed"
    assert site.on(HEAD, f"systemctl is-enabled {PACKAGED_SOCKET} || :").strip() == "masked"
