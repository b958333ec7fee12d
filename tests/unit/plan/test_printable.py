"""Plans, outcomes and changes hold what nodes said: all of it is printable, and honest text is unchanged."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.plan.changes import Change, text_diff
from rackwright.plan.document import check_plan
from rackwright.plan.node_plan import NodeOutcome, NodePlan, PlannedOperation, PlanResult
from tests.unit.answers import NASTY_TEXT, few, is_harmless, many, mutated, strings_of

FORGED = "x\x1b[2J\nplan: nothing to change on 3 of 3 nodes\r\u202e"
SHOWN = "x\\x1b[2J\\x0aplan: nothing to change on 3 of 3 nodes\\x0d\\u202e"


def test_a_change_is_one_printable_line_each_and_its_content_is_data() -> None:
    change = Change("file", FORGED, FORGED, FORGED, diff=("-a\tb\x1b[8m",), because=FORGED, content=FORGED)
    assert (change.target, change.before, change.after, change.because) == (SHOWN,) * 4
    assert change.diff == ("-a\tb\\x1b[8m",)
    assert change.content == FORGED


def test_an_error_keeps_its_lines_and_none_of_them_looks_like_ours() -> None:
    error = "`x` exited 1 saying:\n    \x1b[31mno\nplan: nothing to change"
    for one in (NodePlan("n1", error=error), NodeOutcome("n1", ok=False, error=error)):
        assert one.error == "`x` exited 1 saying:\n    \\x1b[31mno\n    plan: nothing to change"
    assert len(NodePlan("n1", error="x" * 10**6).error or "") == 20_000
    assert NodePlan("n1", note="\x07").note == "\\x07"


def test_an_operation_s_name_is_one_line_and_its_commands_keep_theirs() -> None:
    operation = PlannedOperation("r\n", "n\x1b", (), ("a\n\tb\x1b",))
    assert (operation.role, operation.name, operation.commands) == ("r\\x0a", "n\\x1b", ("a\n\tb\\x1b",))


def test_honest_text_is_as_it_was() -> None:
    change = Change(
        "unit", "/etc/zürich 日本", "a\u00a0b", None, diff=("@@ -1 +1 @@", "+\tx = [1]"), because="/x changes"
    )
    assert change == Change(**{**change.to_json(), "diff": change.diff})
    plan = NodePlan("n1", (PlannedOperation("r", "n", (change,), ("a\nb",)),), 1, "e\n    two", note="n")
    assert NodePlan.from_json({key: value for key, value in plan.to_json().items() if key != "operations"} | {
        "operations": [operation.to_json() for operation in plan.operations]}) == plan  # fmt: skip
    assert change.because == "/x changes"


DOCUMENT: dict[str, Any] = PlanResult(
    "lab",
    "lab.yaml",
    "0" * 64,
    {
        "n1": NodePlan(
            "n1",
            (PlannedOperation("base", "Write", (Change("file", "/x", "a", "b", ("-a", "+b")),), ("c",)),),
        )
    },
    "0" * 64,
).to_json()


def _read(data: Any) -> None:
    plan = None
    try:
        plan = PlanResult.from_json(data)
    except ValueError:
        return
    texts = [one for node in plan.nodes.values() for one in strings_of(node.to_json()["operations"])]
    assert all(is_harmless(one, "\n\t") for one in texts)
    assert all(is_harmless(node.error or "", "\n\t") for node in plan.nodes.values())


@few
@given(mutated(DOCUMENT))
def test_any_plan_document_is_read_or_refused(data: Any) -> None:
    _read(data)


def _carried(text: str) -> None:
    change = Change("file", text, text, text, (text,), text)
    operation = PlannedOperation(text, text, (change,), (text,))
    plan = PlanResult(
        "lab", "lab.yaml", "0" * 64, {"n1": NodePlan("n1", (operation,), 1, text, note=text)}, "0" * 64
    )
    document = plan.to_json()
    check_plan(document)
    for one in strings_of(document):
        assert is_harmless(one, "\n\t")
    json.dumps(document, ensure_ascii=False).encode()
    error = NodeOutcome("n1", ok=False, operations=(operation,), error=text).error or ""
    assert all(line.startswith("    ") for line in error.split("\n")[1:-1])


TEXTS = st.one_of(
    st.text(), st.text(st.characters()), st.sampled_from(NASTY_TEXT), st.text("\x1b[]0mJ\n\r\t \u202e;")
)


@few
@given(TEXTS)
def test_any_text_of_a_node_is_carried(text: str) -> None:
    _carried(text)


@pytest.mark.proof
@many
@given(TEXTS)
def test_any_text_of_a_node_is_carried_ten_thousand_times(text: str) -> None:
    _carried(text)


def test_a_diff_that_would_take_minutes_is_not_made() -> None:
    """A node's file of a megabyte of empty lines, and a declared one that has some."""
    declared = "\n".join("" if number % 2 else f"x{number}" for number in range(189)) + "\nend"
    began = time.process_time()
    diff = text_diff("/etc/x", "\n" * (1 << 20), declared)
    assert time.process_time() - began < 10
    assert diff[:2] == ("--- /etc/x (on the node)", "+++ /etc/x")
    assert diff[2] == "@@ -1,1048576 +1,190 @@ not compared: too many lines are equal"
    assert len(diff) == 3


def test_large_honest_texts_are_compared() -> None:
    was = [
        f"10.0.{number // 250}.{number % 250} node{number}" if number % 5 else "" for number in range(20_000)
    ]
    becomes = [*was[:9_000], "one more", *was[9_000:]]
    assert "+one more" in text_diff("/etc/hosts", "\n".join(was), "\n".join(becomes))
