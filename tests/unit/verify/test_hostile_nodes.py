"""Whatever a node or the head prints, each check of each role comes to a result that can be shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.claims.check import Check, CheckContext, CheckResult, Undetermined
from rackwright.clusterfile.load import load_cluster
from rackwright.command import CommandResult
from rackwright.model.cluster import Cluster
from rackwright.status import Status
from rackwright.verify import verify
from rackwright.verify.backend import Hosts
from rackwright.verify.judge import EVIDENCE_MAX_CHARACTERS, _once, result
from rackwright.verify.junit import junit
from rackwright.verify.report import VerifyReport
from rackwright.verify.selection import PlannedCheck, select
from tests.unit.answers import (
    NASTY_TEXT,
    any_text,
    few,
    hostile,
    is_harmless,
    lines,
    many,
    memory_limit,
    strings_of,
    values,
)

ROOT = Path(__file__).parents[3]
LINES = (
    "active", "enabled", "LoadState=loaded", "ActiveState=active", "root:x:0:0:root:/root:/bin/bash", "Slurm 24.11.5", "1", "0",
    "file|644|root|root|5", "NodeName=worker1 CPUTot=2 RealMemory=100 State=IDLE", "PartitionName=main Nodes=worker[1-2] State=UP",
    "MEMLOCK unlimited unlimited", "memlock unlimited unlimited", "3 4096 2 /etc/x", "v1|x|y", "Filename Type Size", "a=b", "# complete",
)  # fmt: skip


@cache
def planned() -> tuple[Cluster, list[PlannedCheck]]:
    """Every check of every role that the examples declare."""
    cluster = load_cluster(ROOT / "inventory" / "lab.yaml")
    found = [
        one for one in select(cluster, limit=None, roles=None).checks if not one.check.name.startswith("(")
    ]
    unique = {(one.role, one.check.name): one for one in found}
    return cluster, list(unique.values())


class Shell:
    """Every node prints the drawn texts, one after the other."""

    def __init__(self, answers: list[tuple[int, str, str]]) -> None:
        self.answers, self.asked = answers, 0

    def run(self, node: str, command: str, *, stdin: Any = None, timeout: float) -> CommandResult:
        status, out, err = self.answers[self.asked % len(self.answers)]
        self.asked += 1
        return CommandResult(command, status, out, err)


TEXTS = st.one_of(
    any_text(),
    lines(*LINES).map("\n".join),
    values.map(lambda value: json.dumps(value, default=str)),
    st.sampled_from(
        [text for kind, text in hostile().items() if kind not in ("bomb", "many values", "17 MiB")]
    ),
)
ANSWERS = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 1, 127]), TEXTS, st.sampled_from(["", *NASTY_TEXT])),
    min_size=1,
    max_size=4,
)
CASES = st.tuples(st.integers(0, 10**6), ANSWERS)


def is_sound(found: CheckResult) -> None:
    assert found.status in Status
    assert is_harmless(found.evidence, "\n\t")
    assert len(found.evidence) < EVIDENCE_MAX_CHARACTERS + 50
    json.dumps(found.evidence).encode()


def asked(number: int, answers: list[tuple[int, str, str]]) -> None:
    cluster, checks = planned()
    one = checks[number % len(checks)]
    with pytest.MonkeyPatch.context() as monkeypatch, memory_limit():
        monkeypatch.setattr("time.sleep", lambda seconds: None)
        status, evidence, _ = _once(one, cluster, Hosts(cluster, Shell(answers)))
        is_sound(result(one, status, evidence))


@given(CASES)
@few
def test_any_answer(case: tuple[int, list[tuple[int, str, str]]]) -> None:
    asked(*case)


@pytest.mark.proof
@given(CASES)
@many
def test_any_answer_at_length(case: tuple[int, list[tuple[int, str, str]]]) -> None:
    asked(*case)


def test_every_role_of_the_lab_is_among_them() -> None:
    assert len({one.role for one in planned()[1]}) >= 8


def report_of(evidence: str) -> VerifyReport:
    cluster, checks = planned()
    found = result(checks[0], Status.FAIL, evidence), result(checks[0], Status.WARN, evidence)
    return VerifyReport(
        cluster.name, "x", "0" * 64, ("a",), found, (), datetime(2026, 11, 23, tzinfo=UTC), 1.0
    )


@given(any_text())
@few
def test_any_evidence_is_valid_xml_and_json(text: str) -> None:
    report = report_of(text)
    assert len(list(Xml.fromstring(junit(report)).iter("testcase"))) == 2
    told = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert all(is_harmless(one, "\n\t") for one in strings_of(told))


@pytest.mark.parametrize(
    "char", ["\x00", "\x1b", "\x0b", "\x85", "\ud800", "\ufffe", "\uffff", "\u202e", "\u2028"]
)
def test_characters_that_xml_cannot_hold(char: str) -> None:
    [first, _] = Xml.fromstring(junit(report_of(f"a{char}b"))).iter("testcase")
    assert first.find("failure").get("message").startswith("a\\")  # type: ignore[union-attr]


def test_a_node_that_prints_other_text_answers_nothing(make_cluster: Any, local_shell: Any) -> None:
    """Its checks are not asked at all, and the others are those of a clean run."""
    checks = {"alpha": (Check("claim", lambda context: context.output("echo yes").strip()),)}

    def run(shell: Any) -> VerifyReport:
        return verify(
            make_cluster(),
            shell=shell,
            checks_of=lambda role: checks.get(role) or (Check("is", lambda c: ""),),
        )

    clean = {(one.role, one.node): one.evidence for one in run(local_shell()).results}
    for kind, text in hostile().items():
        shell = local_shell()
        whole = shell.run
        shell.run = lambda node, command, whole=whole, text=text, **more: (
            CommandResult(command, 0, text, "") if node == "w1" else whole(node, command, **more)
        )
        report = run(shell)
        mine = [one for one in report.results if one.node == "w1"]
        assert {one.status for one in mine} == {Status.UNKNOWN}, kind
        for one in mine:
            is_sound(one)
        others = {(one.role, one.node): one.evidence for one in report.results if one.node != "w1"}
        assert others == {key: evidence for key, evidence in clean.items() if key[1] != "w1"}


@pytest.mark.parametrize(
    "error", [RecursionError, MemoryError, UnicodeError, OverflowError, AssertionError, IndexError]
)
def test_a_fact_that_breaks_is_not_known(error: type[Exception], local_shell: Any) -> None:
    class Breaks:
        def command(self) -> str:
            return "echo x"

        def process(self, output: list[str]) -> str:
            raise error("of \x1b[1m garbage")

    cluster, checks = planned()
    one = next(one for one in checks if one.node.name == cluster.nodes[0].name)
    hosts = Hosts(cluster, local_shell())
    context = CheckContext(cluster, one.node, one.options, hosts(one.node.name), on=hosts)
    with pytest.raises(
        Undetermined, match=rf"^Breaks cannot be read: {error.__name__}: of \\x1b\[1m garbage$"
    ):
        context.fact(Breaks)
