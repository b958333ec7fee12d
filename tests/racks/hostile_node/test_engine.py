"""plan, drift and apply while one of three nodes answers garbage: the other two get the results of a clean run."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.racks.hostile_node.conftest import HOSTILE, answering
from tests.racks.program import Ran
from tests.racks.site import Site
from tests.unit.answers import hostile, is_harmless, strings_of

pytestmark = [pytest.mark.lab, pytest.mark.proof]

DRIFTED = "worker2"
BY_HAND = "echo '10.9.9.9 drift' >>/etc/hosts"
ESCAPES = b"\x1b[2J\x1b[1;1Hplan: nothing to change on 3 of 3 nodes\x1b]0;owned\x07\r\n"


def _packed(kind: str) -> bytes:
    return base64.b64encode(zlib.compress(hostile()[kind].encode()))


ANSWERS = {
    "infinity": _packed("infinity"),
    "brackets": _packed("brackets"),
    "surrogate": _packed("surrogate"),
    "object": _packed("object"),
    "list": _packed("list"),
    "bomb": hostile()["bomb"].encode(),
    "escapes": ESCAPES,
    "17 MiB": b"x" * (17 * 2**20),
    "nothing": b"",
}
"""The output of the node's sudo for any command."""


def _others(document: dict[str, Any]) -> list[dict[str, Any]]:
    """As they are once written as JSON, in which a tuple is a list."""
    return [node for node in json.loads(json.dumps(document["nodes"])) if node["node"] != HOSTILE]


def _hostile(document: dict[str, Any]) -> dict[str, Any]:
    (mine,) = [node for node in document["nodes"] if node["node"] == HOSTILE]
    return dict(mine)


def _is_readable(document: dict[str, Any]) -> None:
    for text in strings_of(document):
        assert is_harmless(text, "\n\t"), text


@pytest.fixture
def clean(site: Site) -> Iterator[list[dict[str, Any]]]:
    """The others in a clean run: one is in sync, one has drifted. In the end all are as declared."""
    site.converge()
    site.on(DRIFTED, BY_HAND)
    site.plan(2)
    document = site.plan(2)
    assert [len(node["operations"]) for node in document["nodes"]] == [0, 0, 1]
    yield _others(document)
    site.converge()


@pytest.mark.smoke
def test_the_plan_of_the_others_is_that_of_a_clean_run(site: Site, clean: list[dict[str, Any]]) -> None:
    for kind, answer in ANSWERS.items():
        with answering(site, answer):
            document = site.plan(1)
            whole = site.plan(1, full=True)
        _is_readable(document)
        assert _others(document) == clean, kind
        assert [node["operations"] for node in _others(whole)] == [node["operations"] for node in clean], kind
        for found in (document, whole):
            mine = _hostile(found)
            assert (mine["error"] or "").startswith("its answer is invalid: "), (kind, mine)
            assert (mine["operations"], mine["unreachable"]) == ([], False), kind
    site.plan(2)


def test_a_node_without_python_whose_commands_answer_garbage(site: Site, clean: list[dict[str, Any]]) -> None:
    """Each question is asked by itself, fails, and its output is quoted in the error."""
    for status in (1, 127):
        with answering(site, ESCAPES, status=status):
            document = site.plan(1)
        _is_readable(document)
        assert _others(document) == clean
        assert "exited" in _hostile(document)["error"]
        assert "\\x1b[2J" in _hostile(document)["error"]


def test_facts_that_are_asked_one_by_one(site: Site) -> None:
    """A plan of some roles has no batch: every fact of the node gets the garbage itself."""
    site.converge()
    clean = site.plan(0, role="access")
    for kind in ("escapes", "infinity", "17 MiB", "nothing"):
        with answering(site, ANSWERS[kind]), site.here():
            document = _plan_of_role(site, "access")
        _is_readable(document)
        assert _others(document) == _others(clean), kind


def _plan_of_role(site: Site, role: str) -> dict[str, Any]:
    from rackwright.engine.run import plan

    document: dict[str, Any] = plan(site.cluster, roles=frozenset({role})).to_json()
    return document


def test_endless_output_and_silence(site: Site, clean: list[dict[str, Any]]) -> None:
    with answering(site, b"", then="yes"):
        document = site.plan(1)
    assert _others(document) == clean
    assert _hostile(document)["error"] == "its answer is invalid: more than 4 MiB of output: stopped reading"
    with (
        site.declaring(lambda content: content["ssh"].update(command_timeout_seconds=10)),
        answering(site, b"", then="sleep 600"),
    ):
        document = site.plan(4)
        assert [node["operations"] for node in _others(document)] == [node["operations"] for node in clean]
        assert _hostile(document)["unreachable"] is True
        assert f"{HOSTILE} did not report its state within 10 s." in _hostile(document)["error"]


def _harmless(ran: Ran) -> Ran:
    assert is_harmless(ran.out + ran.err, "\n\t"), ran
    return ran


@pytest.mark.parametrize(("kind", "status"), [("escapes", 0), ("escapes", 1), ("bomb", 0)])
def test_the_program_prints_nothing_of_the_node_s_making(
    site: Site, clean: list[dict[str, Any]], kind: str, status: int
) -> None:
    file = str(site.file)
    with answering(site, ANSWERS[kind], status=status):
        planned = _harmless(site.cli("plan", file, expect=1))
        document = json.loads(_harmless(site.cli("plan", file, "--json", expect=1)).out)
        drift = json.loads(_harmless(site.cli("drift", file, "--json", expect=1)).out)
        apply = _harmless(site.apply(1))
    assert f"{HOSTILE}: cannot be planned: " in planned.out
    assert f"unknown: {HOSTILE}" in planned.out.splitlines()[-1]
    assert _others(document) == clean
    assert {node["node"]: node["state"] for node in drift["nodes"]} == {
        "head1": "in sync",
        HOSTILE: "unknown",
        DRIFTED: "drifted",
    }
    assert f"{DRIFTED}: 1 changed" in apply.out
    assert site.on(DRIFTED, "grep -c 10.9.9.9 /etc/hosts || :").strip() == "0"
    assert {node["node"]: len(node["operations"]) for node in site.plan(0)["nodes"]} == {
        "head1": 0,
        HOSTILE: 0,
        DRIFTED: 0,
    }
