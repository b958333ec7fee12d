"""How long runs and their operations took, read from journals."""

from __future__ import annotations

import json

import pytest

from rackwright.engine.former_runs import FormerRuns, whole


@pytest.fixture
def journal(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "rackwright" / "lab" / "runs"
    folder.mkdir(parents=True)

    def write(number, took, *, command="rackwright apply x.yaml", outcome="finished", changed="changed"):
        begin = {"file": "x", "user": "u", "host": "h", "command": command, "cluster": "lab", "limit": None,
                 "deploy": None, "roles": None, "policy": None}  # fmt: skip
        operation = {"node": "n1", "role": "slurm", "name": "Install Slurm"}
        events = [
            (0, "begin", begin),
            (50, "plan", {"file_sha256": "0", "changes": {"n1": 1, "n2": 0}}),
            (100, "wave", {"nodes": ["n1"], "number": 1, "of": 1}),
            (101, "start", operation),
            (101 + took / 2, "finish", {**operation, "outcome": changed}),
            (100 + took, "node", {"node": "n1", "ok": True, "error": None}),
            (100 + took, "end", {"outcome": outcome}),
        ]
        lines = [json.dumps({"at": 1e9 + at, "event": event, **data}) for at, event, data in events]
        (folder / f"2026112{number}T000000Z-abcdef.jsonl").write_text("\n".join(lines) + "\n")

    return write


def test_runs_and_operations(journal):
    journal(1, 40)
    journal(2, 60)
    former = FormerRuns("lab")
    assert former.of(whole(1)) == [40, 60]
    assert former.of("slurm: Install Slurm") == [20, 30]
    assert former.of("slurm: Remove Slurm") == []
    assert FormerRuns("other").of(whole(1)) == []


def test_what_failed_or_was_broken_off_does_not_count(journal):
    journal(1, 40, outcome="ended by KeyboardInterrupt", changed="exit status 1")
    assert FormerRuns("lab").of(whole(1)) == []
    assert FormerRuns("lab").of("slurm: Install Slurm") == []


def test_another_command_is_another_run(journal):
    journal(1, 40, command="rackwright reboot x.yaml")
    assert FormerRuns("lab").of(whole(1)) == []
    assert FormerRuns("lab").of("slurm: Install Slurm") == [20]
