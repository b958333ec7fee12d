"""A journal can be read whatever moment its run was killed at, and a run goes on as it was begun."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rackwright.cli import app
from rackwright.cli import resume as resume_module
from rackwright.drift.install import INSTALL, UNINSTALL
from rackwright.engine.journal import Journal, read_run, runs
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import NodePlan, PlannedOperation, PlanResult

OPERATION = PlannedOperation("base", "Write it", (Change("file", "/x", None, "file 644 root:root"),), ())
PLAN = PlanResult("c", "c.yaml", "0" * 64, {"a": NodePlan("a", (OPERATION,))})
POLICY = {"canary": 1, "size": "10%", "stop_after": 2, "pause_seconds": 3, "parallel": 4}


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "rackwright"


@pytest.fixture
def journal(state) -> Path:
    """Of a whole run."""
    with Journal("c", Path("c.yaml"), limit="a", roles=None, policy=POLICY) as journal:
        journal.planned(PLAN)
        at = {"node": "a", "role": "base", "name": "Write it"}
        journal({"event": "started", **at})
        journal({"event": "finished", **at, "changed": True, "error": None})
        journal({"event": "applied", "outcome": {"node": "a", "ok": True, "operations": [1], "error": None}})
    (path,) = state.rglob("*.jsonl")
    return path


def _run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_it_can_be_read_wherever_it_was_cut_off(journal):
    whole = journal.read_bytes()
    lines = [json.loads(line) for line in whole.splitlines()]
    lines[0]["pid"] = 2**31  # nobody's: this test is still running
    whole = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    for length in range(0, len(whole) - 1, 7):  # the last line is whole without its end of line
        journal.write_bytes(whole[:length])
        run = read_run(journal.stem)
        assert run.state == "interrupted"
        assert len(run.events) in {whole[:length].count(b"\n"), whole[:length].count(b"\n") + 1}
        assert [known.run for known in runs()] == [journal.stem]
    first = whole.index(b"\n")
    for length in (0, 10, first + 20):
        journal.write_bytes(whole[:length])
        assert _run("runs").exit_code == 0
        said = _run("runs", journal.stem)
        assert said.exit_code == 0
        # before its first line a run had not started: there is nothing to resume
        assert (f"hint: rackwright resume {journal.stem}" in said.stdout) == (length > 10)
    journal.write_bytes(whole)
    assert read_run(journal.stem).state == "finished"


def test_a_run_that_said_nothing_yet_changed_nothing(journal):
    journal.write_bytes(b'{"at": 1, "event": "beg')
    with pytest.raises(Exception, match="killed before it had recorded its cluster file"):
        resume_module.resume_command(journal.stem, yes=True)


@pytest.fixture
def resumed(monkeypatch, journal):
    """What a resumption of the run would call, once its program is gone."""
    called = []
    monkeypatch.setattr(resume_module, "_warn_if_edited", lambda known, file: None)

    def carry_out(file, limit, roles, consent, flags, parallel, *, resumed):
        called.append((file, limit, roles, consent.yes, flags, parallel, resumed))

    monkeypatch.setattr(resume_module, "carry_out", carry_out)

    def resume(**begin):
        first, *rest = journal.read_text().splitlines()[:-1]
        journal.write_text("\n".join([json.dumps({**json.loads(first), "pid": 2**31, **begin}), *rest, ""]))
        resume_module.resume_command(journal.stem, yes=True)
        return called

    return resume


def test_a_run_goes_on_as_it_was_begun(resumed):
    flags = {"canary": 1, "size": "10%", "stop_after": 2, "pause_seconds": 3}
    assert resumed() == [(Path("c.yaml"), "a", None, True, flags, 4, None)]


def test_journals_of_before_have_no_policy(resumed):
    none = dict.fromkeys(("canary", "size", "stop_after", "pause_seconds"))
    assert resumed(policy={}) == [(Path("c.yaml"), "a", None, True, none, None, None)]


@pytest.mark.parametrize(
    ("deploy", "command"),
    [
        (INSTALL.stem, "install"),
        (UNINSTALL.stem, "uninstall"),
        ("placed", "install"),  # journals of before
        ("removed", "uninstall"),
    ],
)
def test_an_installation_goes_on_as_one(resumed, monkeypatch, deploy, command):
    called = []
    monkeypatch.setattr(
        "rackwright.cli.resume.install_as_declared", lambda *given: called.append(("install", given))
    )
    monkeypatch.setattr(
        "rackwright.cli.resume.uninstall_command",
        lambda file, limit, yes: called.append(("uninstall", (file, limit, yes))),
    )
    assert resumed(deploy=deploy) == []
    assert called == [(command, (Path("c.yaml"), "a", True))]
