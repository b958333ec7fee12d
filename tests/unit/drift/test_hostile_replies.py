"""The push checker given anything a node may print: that node's UNKNOWN, and the check of the others goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.command import CommandResult
from rackwright.drift import check, node
from rackwright.drift.check import REPLY_MAX_BYTES, judge
from rackwright.drift.notify import message
from rackwright.drift.prometheus import push_metrics
from rackwright.drift.states import Found, State, advanced, unreported
from rackwright.ssh import TOO_MUCH_OUTPUT
from tests.factories import make_cluster
from tests.unit.answers import few, hostile, is_harmless, json_texts, many, memory_limit

VALID: dict[str, Any] = {
    "state": "drifted",
    "changed": ["path /etc/hosts", "unit chrony.service"],
    "count": 2,
    "operations": {"base": 1, "time": 1},
    "expected": "d",
}


def _judged(reply: str) -> None:
    found = judge(reply, "d", ("base", "time"))
    assert isinstance(found, Found)
    assert all(is_harmless(one) and len(one) <= 1000 for one in found.detail)
    assert len(found.detail) <= 11
    history = advanced({}, {"n1": found, "n2": Found(State.IN_SYNC)}, 1.0)
    text = push_metrics("lab", {"n1": found, "n2": Found(State.IN_SYNC)}, history, 0.25, 9)
    assert is_harmless(text, "\n")
    title, body = message("lab", unreported(history, {"n1": found}), history)
    assert is_harmless(title + body, "\n")


@few
@given(json_texts(VALID))
def test_any_reply_is_judged(reply: str) -> None:
    with memory_limit():
        _judged(reply)


@pytest.mark.proof
@many
@given(json_texts(VALID))
def test_any_reply_is_judged_ten_thousand_times(reply: str) -> None:
    with memory_limit():
        _judged(reply)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("Infinity", "it contains Infinity, which is not a JSON number"),
        ("[" * 50_000, "it is nested deeper than 32 levels"),
        ("[]", "the answer: Input should be a valid dictionary or instance of _Reply"),
        ("{}", "state: Field required"),
        (json.dumps({**VALID, "count": 10**300}), "count: Input should be less than or equal to 1000000"),
        (json.dumps({**VALID, "count": -1}), "count: Input should be greater than or equal to 0"),
        (json.dumps({**VALID, "operations": {"base": 10**18}}), "operations.base: Input should be less than"),
        (json.dumps({**VALID, "changed": [1]}), "changed.0: Input should be a valid string"),
        (
            json.dumps({**VALID, "state": "unreachable"}),
            "state: Input should be 'in sync', 'drifted' or 'unknown'",
        ),
        ("x" * (REPLY_MAX_BYTES + 9), "it is 64 KiB, but the limit is 64 KiB"),
    ],
)
def test_what_is_refused_is_that_node_s_unknown(reply: str, why: str) -> None:
    found = judge(reply, "d", ("base",))
    assert found.state is State.UNKNOWN
    assert found.detail[0].startswith(f"its answer is invalid: {why}")


def test_escapes_do_not_reach_a_chat_or_a_log() -> None:
    found = judge(json.dumps({**VALID, "changed": ["path /x\x1b[2J\nn2: in sync -> drifted"]}), "d")
    assert found.detail[0] == "path /x\\x1b[2J\\x0an2: in sync -> drifted"
    reason = judge(json.dumps({**VALID, "state": "unknown", "reason": "\x1b]0;owned\x07"}), "d")
    assert reason.detail == ("\\x1b]0;owned\\x07",)


class _Client:
    def __init__(self, name: str) -> None:
        self.name = name

    def close(self) -> None:
        pass


@pytest.mark.parametrize("said", [*sorted(hostile()), "too much", "an exception", "an exit status"])
def test_the_others_are_checked(monkeypatch: pytest.MonkeyPatch, tmp_path, capsys, said: str) -> None:
    cluster = make_cluster()
    limits: list[int] = []

    def run(client, command, *, sudo, stdin, timeout, limit, as_it_is):
        limits.append(limit)
        if client.name != "worker1":
            return CommandResult(
                command, 0, json.dumps({**VALID, "state": "in sync", "expected": client.name}), ""
            )
        if said == "an exception":
            raise RecursionError("deep\x1b[2J")
        if said == "too much":
            return CommandResult(
                command, TOO_MUCH_OUTPUT, "", "more than 64 KiB of output: stopped reading\n"
            )
        if said == "an exit status":
            return CommandResult(command, 7, "", "\x1b[2Jforged\x07\n")
        return CommandResult(command, 0, hostile()[said], "")

    monkeypatch.setattr(check, "connect", lambda cluster, node: _Client(node.name))
    monkeypatch.setattr(check, "run", run)
    monkeypatch.setattr(check, "load_cluster", lambda path, locked: cluster)
    (tmp_path / "expected.json").write_text(json.dumps({one.name: [one.name, 1] for one in cluster.nodes}))
    (tmp_path / "notify.json").write_text("[]")
    assert check.main(tmp_path, tmp_path) == 0
    state = {
        name: one["state"] for name, one in json.loads((tmp_path / "state.json").read_text())["nodes"].items()
    }
    assert state == {"head1": "in sync", "worker1": "unknown", "worker2": "in sync"}
    assert set(limits) == {REPLY_MAX_BYTES}
    printed = capsys.readouterr()
    assert is_harmless(printed.out + printed.err, "\n")
    assert "2 in sync, 1 unknown" in printed.out


# The check on the node, whose own files may be damaged

ABOUT = {"cluster": "lab", "node": "n1", "questions": [{"kind": "path", "path": "/", "digest_only": True}],
         "askers": ["base | Make it"]}  # fmt: skip


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """The node's folder, with expectations that hold."""
    for name in ("FOLDER", "STATE"):
        monkeypatch.setattr(node, name, str(tmp_path))
    monkeypatch.setattr(node, "METRICS", str(tmp_path / "metrics"))
    (tmp_path / "questions.json").write_text(json.dumps(ABOUT))
    digest, _ = node.ask(ABOUT["questions"])
    node.adopt(digest)
    return tmp_path


def test_a_node_in_sync_says_so(folder) -> None:
    assert node.check()["state"] == "in sync"


@pytest.mark.parametrize("name", ["questions.json", "expected.json"])
@pytest.mark.parametrize(
    "content", ["", "[]", "{}", "Infinity", "[" * 100_000, '{"questions": 1}', '{"questions": [1], "answers": 1}',
                '{"questions": [], "askers": 1}', '{"asked": "", "digest": "", "answers": [1]}', "null", '"x"'],
)  # fmt: skip
def test_a_damaged_file_is_unknown_and_no_traceback(folder, name: str, content: str) -> None:
    (folder / name).write_text(content)
    found = node.check()
    assert found["state"] == "unknown"
    assert "is damaged" in found["reason"]
    node.metrics()
    assert "rackwright_drift_unknown{" in (folder / "metrics").read_text()


def test_answers_that_were_cut_off_hide_no_drift(folder) -> None:
    kept = json.loads((folder / "expected.json").read_text())
    (folder / "expected.json").write_text(json.dumps({**kept, "answers": []}))
    assert node.check()["state"] == "unknown"


@pytest.mark.parametrize("content", ['{"in_sync": Infinity}', '{"in_sync": NaN}', '{"in_sync": "x"}', "[1]",
                                     '{"in_sync": ' + "9" * 400 + "}"])  # fmt: skip
def test_a_damaged_time_is_no_time(folder, content: str) -> None:
    (folder / "last.json").write_text(content)
    assert node.last_in_sync() is None


def test_labels_of_metrics_are_quoted(folder) -> None:
    text = json.dumps({**ABOUT, "cluster": 'a"b\\c\nd'})
    (folder / "questions.json").write_text(text)
    node.metrics()
    assert '{cluster="a\\"b\\\\c?d",node="n1"}' in (folder / "metrics").read_text()


STRATEGY = st.tuples(json_texts(ABOUT), json_texts({"digest": "d", "asked": "a", "answers": ["x"]}))


@few
@given(STRATEGY)
def test_any_content_of_the_node_s_files_is_checked(case: tuple[str, str]) -> None:
    about, kept = (node.loaded(text) for text in case)
    if node.is_about(about) and node.is_expected(kept):
        node.by_role(about, [True] * len(kept["answers"]))
