"""The program as people run it, in this process."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rackwright.cli import run


@dataclass(frozen=True)
class Result:
    """What one run of the program gave."""

    status: int
    out: str
    err: str


@pytest.fixture
def rackwright(capsys):
    def call(*arguments: object) -> Result:
        status = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(status, captured.out, captured.err)

    return call
