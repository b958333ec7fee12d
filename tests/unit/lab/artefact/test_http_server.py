"""What the rack serves to its nodes: files by their exact path, whole or in parts, and nothing else."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright.lab.artefact.http_server import Server


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """The port of a server of two files; one more file lies outside its folder."""
    (tmp_path / "served/images").mkdir(parents=True)
    (tmp_path / "served/artefact.json").write_text("{}\n")
    (tmp_path / "served/images/pause.tar").write_bytes(bytes(range(256)) * 4096)
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "served/link").symlink_to(tmp_path / "secret")
    listener = socket.create_server(("127.0.0.1", 0))
    server = Server(listener, tmp_path / "served")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    server.shutdown()
    server.server_close()
    thread.join(10)


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_whole_files(port: int):
    answer, body = ask(port, "/images/pause.tar")
    assert (answer.status, body) == (200, bytes(range(256)) * 4096)
    answer, body = ask(port, "/artefact.json", "HEAD")
    assert (answer.status, answer.getheader("Content-Length"), body) == (200, "3", b"")


@pytest.mark.parametrize(
    ("wanted", "status", "first", "length"),
    [
        ("bytes=0-0", 206, 0, 1),
        ("bytes=255-256", 206, 255, 2),
        ("bytes=1048570-", 206, 1048570, 6),
        ("bytes=5-99999999", 206, 5, 1048571),
        ("bytes=1048576-", 416, 0, None),
    ],
)
def test_a_cut_download_goes_on(port: int, wanted: str, status: int, first: int, length: int | None):
    answer, body = ask(port, "/images/pause.tar", Range=wanted)
    assert answer.status == status
    if length is not None:
        assert body == (bytes(range(256)) * 4096)[first : first + length]
        assert answer.getheader("Content-Range") == f"bytes {first}-{first + length - 1}/1048576"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/images",
        "/images/",
        "/../secret",
        "/images/../../secret",
        "/%2e%2e/secret",
        "/link",
        "//etc/passwd",
    ],
)
def test_nothing_else_is_served(port: int, path: str):
    answer, body = ask(port, path)
    assert answer.status == 404
    assert b"secret" not in body


def test_nothing_can_be_put_there(port: int):
    assert ask(port, "/artefact.json", "PUT")[0].status == 501
