"""In the place of ssh: what would run on a node runs here."""

from __future__ import annotations

import subprocess
from typing import Self

import pytest

from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.prometheus import query


class LocalPool:
    """Runs commands of every node on this machine, but those of nodes that are `gone`."""

    gone: tuple[str, ...] = ()
    answer: str | None = None
    """What a node prints instead."""
    asked: list[str] = []  # noqa: RUF012 - set anew by each test

    def __init__(self, cluster: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, node: str, command: str, *, stdin: bytes, timeout: float) -> CommandResult:
        self.asked.append(node)
        if node in self.gone:
            raise ConnectionFailed(f"Cannot connect to {node}: it is off.")
        if self.answer is not None:
            return CommandResult(command, 0, self.answer, "")
        done = subprocess.run(
            ["sh", "-c", command], input=stdin, capture_output=True, timeout=timeout, check=False
        )
        return CommandResult(command, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> type[LocalPool]:
    """Stands for ssh in rackwright.prometheus.query."""
    monkeypatch.setattr(query, "Pool", LocalPool)
    monkeypatch.setattr(LocalPool, "asked", [])
    monkeypatch.setattr(LocalPool, "gone", ())
    monkeypatch.setattr(LocalPool, "answer", None)
    return LocalPool
