"""A deploy on the machine that rackwright runs on, through pyinfra's @local."""

from __future__ import annotations

import getpass
import grp
import os
from functools import partial
from pathlib import Path

import pytest

from rackwright.engine.this_machine import ThisMachine
from rackwright.operations import files, settings
from tests.factories import make_cluster


@pytest.fixture(autouse=True)
def no_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)  # the tests run as any user


def _write(path: Path) -> None:
    group = grp.getgrgid(os.getgid()).gr_name
    files.file(name="Write it", path=str(path), content="text\n", owner=getpass.getuser(), group=group)


def test_plan_changes_nothing_apply_does_and_then_there_is_nothing_to_do(tmp_path: Path):
    deploy = partial(_write, tmp_path / "file")
    machine = ThisMachine(make_cluster(), deploy)
    plan = machine.plan()
    assert [operation.name for operation in plan.operations] == ["Write it"]
    assert not (tmp_path / "file").exists()
    assert machine.apply().ok
    assert (tmp_path / "file").read_text() == "text\n"
    assert ThisMachine(make_cluster(), deploy).plan().operations == ()


@pytest.mark.parametrize(
    ("write", "why"),
    [("echo full >&2; exit 3", "exited 3 with the output:\n    full"), ("sleep 60", "exited 124")],
)
def test_a_command_that_fails_or_hangs_is_reported(write: str, why: str):
    def deploy() -> None:
        settings.setting(name="Set it", target="it", read="echo no", want="yes", write=write, _timeout=1)

    machine = ThisMachine(make_cluster(), deploy)
    assert machine.plan().error is None
    outcome = machine.apply()
    assert not outcome.ok
    assert outcome.error is not None
    assert why in outcome.error
