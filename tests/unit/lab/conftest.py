"""What the lab's tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.lab.socket_server import Serve, Server, Start


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Start]:
    """Starts a server; in the end none of its clients may have sent what it did not expect."""
    servers: list[Server] = []

    def start(serve: Serve, path: Path = tmp_path / "socket") -> Path:
        servers.append(Server(path, serve))
        return path

    yield start
    for server in servers:
        server.close()
        assert server.failures == []
