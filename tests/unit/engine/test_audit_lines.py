"""What a head's journal says of runs, for the audit trail."""

from __future__ import annotations

import json

import pytest

from rackwright.engine import audit_lines, lock_holder

BY = {
    "run": "20261123T080000Z-aaaaaa",
    "user": "ada",
    "host": "laptop",
    "command": "rackwright apply lab.yaml --yes",
}
RUN = BY["run"]


def said(event, **data):
    return audit_lines.line_of(RUN, json.dumps({"at": 1.0, "event": event, **data}).encode())


def test_a_run_from_its_beginning_to_its_end():
    assert (
        audit_lines.began("lab", BY)
        == f"run {RUN} of lab began, by ada@laptop: rackwright apply lab.yaml --yes"
    )
    assert said("plan", changes={"w2": 3, "w1": 12, "head1": 0}) == f"run {RUN} changes w1: 12, w2: 3"
    assert said("drain", nodes=["w1"]) == f"run {RUN} drains w1"
    assert said("reboot", nodes=["w1", "w2"]) == f"run {RUN} reboots w1, w2"
    assert said("resume", nodes=["w1"]) == f"run {RUN} puts back into service w1"
    assert said("node", node="w1", ok=False, error="apt failed") == f"run {RUN} failed on w1: apt failed"
    assert said("rotation", secret="munge_key", step="switch", nodes=["w1"]) == (
        f"run {RUN} replaces the secret munge_key on w1"
    )
    assert said("end", outcome="finished") == f"run {RUN} ended: finished"
    assert audit_lines.ended("lab", RUN) == f"run {RUN} of lab released the lock"


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("plan", {"changes": {"w1": 0}}),
        ("plan", {"changes": "many"}),
        ("node", {"node": "w1", "ok": True}),
        ("rotation", {"secret": "munge_key", "step": "stage", "nodes": ["w1"]}),
        ("finish", {"node": "w1", "role": "base", "name": "Write it"}),
        (["plan"], {}),
    ],
)
def test_what_no_auditor_asks_for(event, data):
    assert said(event, **data) is None


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"5", b'"plan"'])
def test_a_damaged_line_says_nothing(line):
    assert audit_lines.line_of(RUN, line) is None


def test_words_of_another_machine_are_one_line():
    hostile = {**BY, "user": "a\nb", "command": "x" * 1000, "host": "\x1b[2J"}
    text = audit_lines.began("lab", hostile)
    assert text.isprintable()
    assert "by a?b@?[2J: xxx" in text
    assert len(text) < 600
    assert said("drain", nodes="w1") == f"run {RUN} drains ?"
    assert said("drain", nodes=[f"w{n}" for n in range(50)]).endswith("w39 and 10 more")
    assert said("node", node=None, ok=False) == f"run {RUN} failed on None: None"


def test_the_holder_of_the_lock_writes_them(tmp_path, monkeypatch):
    noted = []
    monkeypatch.setattr(lock_holder.syslog, "syslog", lambda level, text: noted.append((level, text)))
    folders = {"locks": str(tmp_path / "run"), "journals": str(tmp_path / "lib" / "runs")}
    holder = lock_holder.Holder({"by": BY, "cluster": "lab", "silent_seconds": 30, **folders})
    lines = [
        json.dumps({"at": 1.0, "event": "plan", "changes": {"w1": 2}}),
        json.dumps(
            {"at": 1.0, "event": "finish", "node": "w1", "role": "base", "name": "x", "outcome": "changed"}
        ),
        json.dumps({"at": 2.0, "event": "end", "outcome": "finished"}),
    ]
    holder.append([f"{RUN}\t{line}".encode() for line in lines])
    assert holder.problem is None
    level = lock_holder.syslog.LOG_AUTHPRIV | lock_holder.syslog.LOG_NOTICE
    assert noted == [(level, f"run {RUN} changes w1: 2"), (level, f"run {RUN} ended: finished")]
