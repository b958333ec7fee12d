"""Whatever a node sends in place of the probe's document: results for each check, printable, and never an exception."""

from __future__ import annotations

import copy
import json
import time
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.boundary import Refused
from rackwright.command import CommandResult
from rackwright.health import judge as judging
from rackwright.health.guard.would import Would
from rackwright.health.judge import EVIDENCE_MAX_CHARACTERS, FINDINGS_MAX, judge
from rackwright.health.received import DOCUMENT_MAX_BYTES, LISTED_MAX, read_document
from rackwright.health.run import health, judge_saved
from rackwright.health.verdict import fail
from rackwright.health.would import would
from rackwright.model.types import NodeRole
from rackwright.status import Status
from tests.factories import RunsSlurm, make_cluster, make_node
from tests.unit.answers import (
    any_text,
    few,
    hostile,
    is_harmless,
    json_texts,
    many,
    memory_limit,
    mutated,
    strings_of,
)
from tests.unit.health.bases import BASES, SKUS
from tests.unit.health.fake_node import document

KINDS = ("full", "rack", "amd", "old", "mig", "dgx-station-a100", "lab-node")
DOCUMENTS = {name: document(BASES[name].node) for name in KINDS}
EVERY_CHECK = judging.all_checks()
CLEAN = {name: {one.check for one in judge(BASES[name].expected, raw)} for name, raw in DOCUMENTS.items()}
OPTIONS = {"slurm": RunsSlurm()}
CLUSTER = make_cluster(
    *[
        make_node(
            f"gpu{n}",
            n,
            NodeRole.WORKER,
            sku=SKUS["dgx-h100"].sku,
            platform="bare-metal",
            options=OPTIONS,
            primary=n == 1,
        )
        for n in (1, 2, 3)
    ]
)
SOUND = {f"gpu{n}": json.dumps({**document(SKUS["dgx-h100"].node), "node": f"gpu{n}"}) for n in (1, 2, 3)}


class Shell:
    """Two sound nodes, and gpu2 with an answer of its own."""

    def __init__(self, answer: str, status: int = 0, others: dict[str, str] = SOUND) -> None:
        self.answer, self.status, self.others = answer, status, others

    def run(self, node: str, command: str, *, stdin: Any = None, timeout: float) -> CommandResult:
        if node == "gpu2":
            return CommandResult(command, self.status, self.answer, "")
        return CommandResult(command, 0, self.others[node], "")


def is_sound(told: dict[str, Any]) -> None:
    """Valid JSON, every text printable and bounded."""
    json.dumps(told, allow_nan=False).encode()
    assert all(is_harmless(text) for text in strings_of(told))
    for one in told["results"]:
        assert len(one["evidence"]) <= EVIDENCE_MAX_CHARACTERS


def judged_as_it_came(name: str, text: str, changed: frozenset[str] | None = None) -> None:
    """`changed`: sections of which the checks judge; None: every check does."""
    checks = [one for one in EVERY_CHECK if changed is None or changed.intersection(one.reads)]
    with memory_limit(), patch.object(judging, "all_checks", lambda: checks):
        found = judge_saved(BASES[name].expected, text)
    told = found.to_json()
    is_sound(told)
    fast = isinstance(found.document, dict) and found.document.get("fast") is True
    judged = CLEAN[name].intersection(one.id for one in checks)
    assert fast or {one.check for one in found.results} == judged
    assert found.status in Status
    assert len(found.results) <= (FINDINGS_MAX + 1) * len(judged)


@st.composite
def changed_documents(draw: st.DrawFn, name: str) -> tuple[Any, frozenset[str] | None]:
    """A document with one or two of its sections changed, which these are, and rarely its frame: None."""
    raw = DOCUMENTS[name]
    sections = dict(raw["sections"])
    changed = draw(st.lists(st.sampled_from(sorted(sections)), min_size=1, max_size=2))
    for section in changed:
        sections[section] = draw(mutated(sections[section]))
    frame: Any = {key: value for key, value in raw.items() if key != "sections"}
    if draw(st.integers(0, 9)) == 0:
        frame = draw(mutated(frame))
        return ({**frame, "sections": sections} if isinstance(frame, dict) else frame), None
    return {**frame, "sections": sections}, frozenset(changed)


@st.composite
def answers(draw: st.DrawFn) -> tuple[str, str, frozenset[str] | None]:
    """A kind of node, what it sent, and the sections that differ from a sound answer; None: it may be any."""
    name, how = draw(st.sampled_from(KINDS)), draw(st.integers(0, 9))
    if how == 0:
        return name, draw(json_texts(DOCUMENTS["lab-node"])), None
    if how == 1:
        return name, draw(any_text()), None
    raw, changed = draw(changed_documents(name))
    return name, json.dumps(raw), changed


ANSWERS = answers()


@given(ANSWERS)
@settings(few, max_examples=60)  # 0.02 s each: every check judges
def test_any_document(case: tuple[str, str, frozenset[str] | None]) -> None:
    judged_as_it_came(*case[:2])


@pytest.mark.proof
@given(ANSWERS)
@many
def test_any_document_at_length(case: tuple[str, str, frozenset[str] | None]) -> None:
    """Mostly judged by the checks that read what was changed: the others come to what they came to before."""
    judged_as_it_came(*case)


@given(st.sampled_from(KINDS).flatmap(lambda name: st.tuples(st.just(name), changed_documents(name))))
@settings(few, max_examples=60)
def test_any_object_on_the_node_itself(case: tuple[str, tuple[Any, frozenset[str] | None]]) -> None:
    """There the judge gets the probe's own data, with whatever Python can hold."""
    name, (raw, _) = case
    assert all(is_harmless(one.evidence) for one in judge(BASES[name].expected, raw))


@pytest.mark.parametrize("kind", sorted(hostile()))
def test_one_of_three_nodes_answers_garbage(kind: str) -> None:
    clean = health(CLUSTER, shell=Shell(SOUND["gpu2"]))
    found = health(CLUSTER, shell=Shell(hostile()[kind]))
    assert [node.to_json() for node in found.nodes if node.node != "gpu2"] == [
        node.to_json() for node in clean.nodes if node.node != "gpu2"
    ]
    (mine,) = [node for node in found.nodes if node.node == "gpu2"]
    assert {one.status for one in mine.results} <= {Status.UNKNOWN, Status.OUT_OF_SCOPE}
    assert {one.check for one in mine.results} == {one.check for one in clean.nodes[1].results}
    assert mine.status is Status.UNKNOWN
    is_sound(mine.to_json())


@pytest.mark.parametrize("member", ["taken_at", "seconds", "cpu_seconds"])
@pytest.mark.parametrize("value", ["now", [1], {"a": 1}, True, 10**400, -5, None])
def test_figures_of_the_document_are_numbers_or_null(member: str, value: Any) -> None:
    raw = json.dumps({**DOCUMENTS["full"], member: value})
    told = judge_saved(BASES["full"].expected, raw).to_json()
    assert told[member] is None
    is_sound(told)


def test_a_node_cannot_choose_to_be_judged_by_fewer_checks() -> None:
    clean = health(CLUSTER, shell=Shell(SOUND["gpu2"])).nodes[1]
    fast = health(CLUSTER, shell=Shell(json.dumps({**json.loads(SOUND["gpu2"]), "fast": True}))).nodes[1]
    assert [one.check for one in fast.results] == [one.check for one in clean.results]


@pytest.mark.parametrize(
    "error", [RecursionError("deep"), MemoryError(), OverflowError("x\x1b[2J"), KeyError("x" * 10**6)]
)
def test_a_check_that_breaks_is_unknown_by_the_name_of_the_error(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(expected: Any, document: Any) -> Any:
        yield fail("seen before it broke")
        raise error

    check = judging.all_checks()[0]
    monkeypatch.setattr(
        judging, "all_checks", lambda: [judging.HealthCheck(**{**vars(check), "function": breaks})]
    )
    first, second = judge(BASES["full"].expected, DOCUMENTS["full"])
    assert (first.status, first.evidence) == (Status.FAIL, "seen before it broke")
    assert second.status is Status.UNKNOWN
    assert second.evidence.startswith(f"the check crashed: {type(error).__name__}")
    assert is_harmless(second.evidence)


def test_findings_of_one_check_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    check = judging.all_checks()[0]
    endless = {**vars(check), "function": lambda expected, document: (fail(str(n)) for n in range(10**9))}
    monkeypatch.setattr(judging, "all_checks", lambda: [judging.HealthCheck(**endless)])
    found = judge(BASES["full"].expected, DOCUMENTS["full"])
    assert len(found) == FINDINGS_MAX + 1
    assert "the rest are not listed" in found[-1].evidence


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (json.dumps("x" * DOCUMENT_MAX_BYTES), "it is 4 MiB, but the limit is 4 MiB"),
        (
            json.dumps({"a": [0] * (LISTED_MAX + 1)}),
            "it has a list of 4097 elements",
        ),
        ('{"at": Infinity}', "it contains Infinity"),
    ],
)
def test_a_document_beyond_its_limits_is_refused(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        read_document(text)


def _lists(value: Any, path: tuple[Any, ...] = ()) -> Any:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _lists(one, (*path, key))
    elif isinstance(value, list) and value:
        yield path
        yield from _lists(value[0], (*path, 0))


@pytest.mark.slow
def test_no_document_takes_long_to_judge() -> None:
    """Each list as long as it may be; some checks compare each element with each."""
    raw = DOCUMENTS["full"]
    for path in _lists(raw):
        made = copy.deepcopy(raw)
        holder: Any = made
        for step in path[:-1]:
            holder = holder[step]
        seed, length = holder[path[-1]], LISTED_MAX
        while True:
            holder[path[-1]] = [seed[number % len(seed)] for number in range(length)]
            if len(text := json.dumps(made)) < DOCUMENT_MAX_BYTES:
                break
            length //= 2
        began = time.process_time()
        judge_saved(BASES["full"].expected, text)
        assert time.process_time() - began < 15, path


RECORD = Would(False, 1_795_000_000.0, 1_795_100_000.0).to_json()
EPISODE = {
    "since": 1.0,
    "last": 2.0,
    "passes": 3,
    "checks": ["gpu-count"],
    "action": "reboot",
    "reason": "r",
    "until": None,
}
FULL_RECORD = {**RECORD, "current": EPISODE, "past": [{**EPISODE, "until": 5.0}]}


def read_as_it_came(text: str) -> None:
    others = dict.fromkeys(SOUND, json.dumps(RECORD))
    with memory_limit():
        found = would(CLUSTER, shell=Shell(text, others=others), now=1_795_100_060.0)
    assert [node.why for node in found.nodes if node.node != "gpu2"] == [None, None]
    told = found.to_json()
    json.dumps(told, allow_nan=False).encode()
    assert all(is_harmless(one) for one in strings_of(told))


@given(json_texts(FULL_RECORD))
@few
def test_any_record_of_what_would_have_been_done(text: str) -> None:
    read_as_it_came(text)


@pytest.mark.proof
@given(json_texts(FULL_RECORD))
@many
def test_any_record_at_length(text: str) -> None:
    read_as_it_came(text)


@pytest.mark.parametrize("kind", sorted(hostile()))
def test_a_record_that_is_garbage_is_unknown(kind: str) -> None:
    read_as_it_came(hostile()[kind])
    (mine,) = [
        one
        for one in would(
            CLUSTER, shell=Shell(hostile()[kind], others=dict.fromkeys(SOUND, json.dumps(RECORD)))
        ).nodes
        if one.node == "gpu2"
    ]
    assert mine.status is Status.UNKNOWN


def test_a_record_from_the_future_is_unknown() -> None:
    at = RECORD["at"] - 86400
    (mine,) = [
        one
        for one in would(
            CLUSTER, shell=Shell(json.dumps(RECORD), others=dict.fromkeys(SOUND, json.dumps(RECORD))), now=at
        ).nodes
        if one.node == "gpu2"
    ]
    assert (mine.status, mine.why) == (
        Status.UNKNOWN,
        "its last pass is dated 24 h ahead of the local clock",
    )


def test_a_gpu_for_screens_with_an_index_of_another_type() -> None:
    base = BASES["dgx-station-a100"]
    raw = copy.deepcopy(DOCUMENTS["dgx-station-a100"])
    raw["sections"]["gpus"]["data"]["gpus"].append(
        {"pci_id": str(base.expected.gpus.display_pci_id).partition(":")[2], "index": []}
    )
    found = judge(base.expected, raw)
    assert {one.status for one in found} == {Status.UNKNOWN}
    assert found[0].evidence.startswith("the document cannot be read: TypeError")
