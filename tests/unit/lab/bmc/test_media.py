"""The image of a virtual CD: what is fetched, from whom, and what is left when that fails."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from rackwright.certificates.read import pem
from rackwright.lab.bmc import certificates, media
from rackwright.lab.bmc.media import Source, check, download, shown
from rackwright.lab.bmc.refusal import Refusal

CONTENT = b"image" * 1000
Start = Callable[[Path | None], str]


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/private") and self.headers["Authorization"] != "Basic dTpwdw==":
            return self.send_error(401)
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/image")
            return self.end_headers()
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT) * (2 if self.path == "/short" else 1)))
        self.end_headers()
        self.wfile.write(CONTENT)
        return None

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a server of images; the BMC's sockets are this host's own."""
    monkeypatch.setattr(media, "socket_inside", lambda _: socket.socket())
    started: list[ThreadingHTTPServer] = []

    def start(chain: Path | None) -> str:
        one = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        if chain is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(chain)
            one.socket = context.wrap_socket(one.socket, server_side=True)
        Thread(target=one.serve_forever, args=(0.05,), daemon=True).start()
        started.append(one)
        return f"{'http' if chain is None else 'https'}://127.0.0.1:{one.server_address[1]}"

    yield start
    for one in started:
        one.shutdown()
        one.server_close()


def fetched(folder: Path, url: str, *trusted: str, verify: bool = False, user: str = "") -> int:
    return download("ns", "127.0.0.1", Source(url, trusted, verify, user, "pw"), folder / "medium.iso")


def test_an_image_is_fetched_and_private(server: Start, tmp_path: Path):
    assert fetched(tmp_path, f"{server(None)}/image") == len(CONTENT)
    (file,) = tmp_path.iterdir()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (CONTENT, 0o600)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/private", "127.0.0.1 answered 401"),
        ("/moved", "127.0.0.1 answered 302"),
        ("/short", "5000 bytes came, of 10000"),
    ],
)
def test_nothing_is_left_of_one_that_fails(server: Start, tmp_path: Path, path: str, why: str):
    with pytest.raises(Refusal, match=why) as caught:
        fetched(tmp_path, f"{server(None)}{path}")
    assert caught.value.status == 400
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there_is_named(server: Start, tmp_path: Path):
    url = server(None)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(Refusal, match=r"127\.0\.0\.1 did not deliver it: .*refused"):
        fetched(tmp_path, url.rpartition(":")[0] + f":{port}/image")


def test_a_password_is_sent(server: Start, tmp_path: Path):
    assert fetched(tmp_path, f"{server(None)}/private", user="u") == len(CONTENT)


def test_a_certificate_is_checked_where_it_is_to_be(server: Start, tmp_path: Path):
    key, authority = certificates.new_authority("the CA of images")
    stranger = pem(certificates.new_authority("another CA")[1])
    chain = tmp_path / "chain.pem"
    certificates.write_chain(chain, *certificates.new_certificate("127.0.0.1", "images", key, authority))
    url, folder = f"{server(chain)}/image", tmp_path / "bmc"
    folder.mkdir()
    for trusted in ((), (stranger,), ("not a certificate",)):
        with pytest.raises(Refusal, match=r"the certificate of 127\.0\.0\.1 is not trusted"):
            fetched(folder, url, *trusted, verify=True)
        assert list(folder.iterdir()) == []
    assert fetched(folder, url, stranger, pem(authority), verify=True) == len(CONTENT)
    assert fetched(folder, url) == len(CONTENT)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (None, "not a URL"),
        ("", "begins with http"),
        ("ftp://10.0.0.1/x", "begins with http"),
        ("file:///etc/shadow", "begins with http"),
        ("http://example.com/x", "not an IPv4 address"),
        ("http://[::1]/x", "not an IPv4 address"),
        ("http://10.0.0.1:99999/x", "not a URL"),
        ("http://10.0.0.1/a b", "not a URL"),
        ("http://10.0.0.1/a\r\nX: y", "not a URL"),
        ("http://10.0.0.1/" + "x" * 3000, "not a URL"),
    ],
)
def test_what_is_not_fetched(url: object, why: str):
    with pytest.raises(Refusal, match=why):
        check(url)


def test_a_password_in_a_url_is_not_shown():
    assert shown("http://u:secret@10.0.0.1:80/a.iso?x=1#y") == "http://10.0.0.1:80/a.iso?x=1"
