"""What a node's last verdict, its kernel log and the head's answers may hold: UNKNOWN parts, printable, no exception."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.boundary import Refused
from rackwright.command import CommandResult
from rackwright.engine.journal import Run
from rackwright.health.guard import places
from rackwright.health.received import read_document
from rackwright.health.run import NodeHealth
from rackwright.plan.node_plan import NodePlan
from rackwright.why import ask, parts
from rackwright.why.ask import why
from rackwright.why.last import read_last
from tests.unit.answers import (
    any_text,
    few,
    hostile,
    is_harmless,
    json_texts,
    lines,
    many,
    memory_limit,
    strings_of,
)
from tests.unit.health.fake_node import document
from tests.unit.why.test_why import CLUSTER, HEALTHY, LAST, Shell

EPISODE = {
    "since": 1_795_000_000.0,
    "passes": 4,
    "reason": "rackwright-health: gpu-count FAIL reboot: 7 of 8",
}
VERDICT = {**LAST, "would_drain": EPISODE, "policy": {"clean_passes": 3, "act": False}}
DOCUMENT = {**document(HEALTHY), "node": "gpu1"}
COMPLAINT = {
    "kind": "xid", "device": "0000:1b:00", "server": None, "first": 1.0, "at": 2.0, "back_at": None, "times": 1, "bursts": 1,
    "message": "NVRM: Xid", "code": 79, "severity": None, "cause": None, "recovery": None, "driver": None, "where": "gpu",
    "mounts": None, "gbps": None, "speed": None, "width": None, "best": None, "wide": None,
}  # fmt: skip
LOG = {"from": "journalctl", "since": 1, "lines": 9, "entries": [COMPLAINT, COMPLAINT], "counts": {"xid": 2}}
FRAME = {"schema": "rackwright-probe", "version": 1, "taken_at": 2.0, "node": "gpu1", "sections": {}}


def is_sound(told: dict[str, Any]) -> None:
    json.dumps(told, allow_nan=False).encode()
    assert all(is_harmless(text) for text in strings_of(told))


def health_part_of(text: str) -> None:
    try:
        with memory_limit():
            last, unread = read_last(text), None
    except Refused as error:
        last, unread = None, str(error)
    is_sound(parts.health_part(NodeHealth("gpu1", None, ()), last, unread).shown().to_json())


def kernel_part_of(text: str) -> None:
    try:
        section = json.loads(text)
        with memory_limit():
            received = read_document(
                json.dumps({**FRAME, "sections": {"kernel_log": {"ok": True, "data": section}}})
            )
    except (ValueError, RecursionError):
        return
    is_sound(parts.kernel_part(received, None, None).shown().to_json())


@given(json_texts(VERDICT))
@few
def test_any_last_verdict(text: str) -> None:
    health_part_of(text)


@pytest.mark.proof
@given(json_texts(VERDICT))
@many
def test_any_last_verdict_at_length(text: str) -> None:
    health_part_of(text)


@given(json_texts(LOG))
@few
def test_any_kernel_log(text: str) -> None:
    kernel_part_of(text)


@pytest.mark.proof
@given(json_texts(LOG))
@many
def test_any_kernel_log_at_length(text: str) -> None:
    kernel_part_of(text)


class Hostile(Shell):
    """The node, or the head, answers one text to everything."""

    def __init__(self, head: str | None = None, node: str | None = None) -> None:
        super().__init__()
        self.answers = {"head1": head, "gpu1": node}

    def run(self, node: str, command: str, *, stdin: Any = None, timeout: float) -> CommandResult:
        answer = self.answers.get(node)
        if answer is not None:
            return CommandResult(command, 0, answer, "")
        return super().run(node, command, stdin=stdin, timeout=timeout)


def explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, shell: Shell) -> dict[str, Any]:
    monkeypatch.setattr(ask, "runs", list)
    with memory_limit():
        found = why(
            CLUSTER,
            CLUSTER.by_name["gpu1"],
            tmp_path / "c.yaml",
            shell=shell,
            planner=lambda c, n: NodePlan(n),
        )
    told = found.to_json()
    is_sound(told)
    return {**told, "unknown": found.unknown}


@pytest.mark.parametrize("kind", sorted(hostile()))
def test_a_node_that_answers_garbage(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, kind: str) -> None:
    told = explained(monkeypatch, tmp_path, Hostile(node=hostile()[kind]))
    assert told["unknown"]
    assert {part["part"]: part["unknown"] for part in told["parts"]} == {
        "scheduler": False, "health": True, "declaration": False, "changes": False, "kernel": True,
    }  # fmt: skip


@pytest.mark.parametrize("kind", sorted(hostile()))
def test_a_head_that_answers_garbage(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, kind: str) -> None:
    told = explained(monkeypatch, tmp_path, Hostile(head=hostile()[kind]))
    assert {part["part"]: part["unknown"] for part in told["parts"]} == {
        "scheduler": True, "health": False, "declaration": False, "changes": False, "kernel": False,
    }  # fmt: skip


@pytest.mark.parametrize("kind", sorted(set(hostile()) - {"nothing"}))
def test_a_last_verdict_that_is_garbage_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, kind: str
) -> None:
    shell = Shell()
    sound = shell.run
    shell.run = lambda node, command, **more: (  # type: ignore[method-assign]
        CommandResult(command, 0, hostile()[kind], "")
        if places.LAST in command
        else sound(node, command, **more)
    )
    told = explained(monkeypatch, tmp_path, shell)
    (part,) = [one for one in told["parts"] if one["part"] == "health"]
    assert part["unknown"]
    assert part["lines"][-1].startswith(f"the record of its health check ({places.LAST}) was rejected: ")
    assert part["last"] is None


NODE_LINE = "NodeName=gpu1 State=IDLE+DRAIN CPUTot=2 Reason=rackwright: R1 [root@2026-11-21T20:00:00]"


@given(st.lists(lines(NODE_LINE, "7|ada|train"), max_size=2), any_text())
@few
def test_any_answer_of_the_head(rows: list[list[str]], text: str) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(parts, "SHOWN", 8)
        shell = Hostile(head="\n".join("\n".join(one) for one in rows) or text)
        part, _ = ask._scheduler(CLUSTER, CLUSTER.by_name["gpu1"], shell)
        is_sound(part.shown().to_json())


def test_a_run_that_is_no_name_is_not_offered_as_a_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    told = explained(monkeypatch, tmp_path, Shell("Reason=rackwright: $(reboot) [root@2026-11-21T20:00:00]"))
    assert "rackwright runs" not in told["next_step"]
    assert "rackwright resume" not in told["next_step"]


def test_a_journal_with_a_time_that_is_none_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    event = {"event": "finish", "node": "gpu1", "role": "r", "name": "n", "at": 1e300}
    run = Run.__new__(Run)
    object.__setattr__(run, "run", "R")
    object.__setattr__(run, "events", (event,))
    monkeypatch.setattr(Run, "begin", {"cluster": CLUSTER.name}, raising=False)
    monkeypatch.setattr(ask, "runs", lambda: [run])
    assert ask._changes(CLUSTER, CLUSTER.by_name["gpu1"]).unknown
