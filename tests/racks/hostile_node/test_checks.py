"""verify, health and why while one of three nodes answers garbage: the other two get the results of a clean run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from rackwright.health.run import health
from rackwright.status import Status
from rackwright.verify import verify
from rackwright.why.ask import why
from tests.racks.hostile_node.conftest import HOSTILE, answering
from tests.racks.program import Ran
from tests.racks.site import Site
from tests.unit.answers import hostile, is_harmless, strings_of

pytestmark = [pytest.mark.lab, pytest.mark.proof]

ESCAPES = b"\x1b[2J\x1b[1;1Hverify: 3 nodes: 99 pass\x1b]0;owned\x07\r\n\xff\xed\xa0\x80\n"
THROUGH_THE_PROGRAM = {
    "escapes": ESCAPES,
    "brackets": hostile()["brackets"].encode(),
    "infinity": b"Infinity\n",
}
IN_PROCESS = {
    **{
        kind: hostile()[kind].encode()
        for kind in ("nothing", "object", "list", "surrogate", "digits", "bomb")
    },
    "17 MiB": b"x" * (17 * 2**20),
}
OF_THE_LOAD = ("fs-answers", "cpu-load")
"""Health checks of how busy the machine is that carries the rack."""
Results = dict[tuple[str, str, str], tuple[str, str]]


def _without_figures(text: str) -> str:
    """What two runs have in common: sizes, ages, times of day and the sign of a clock's offset differ."""
    return re.sub(r"[-+]?[0-9][0-9.:]*", "#", text)


def _of(results: list[dict[str, Any]]) -> Results:
    """Status and evidence by node, role or area, and check."""
    return {
        (one["node"], one.get("role", one.get("area", "")), one["check"]): (
            one["status"],
            _without_figures(one["evidence"]),
        )
        for one in results
        if one["check"] not in OF_THE_LOAD
    }


def _same_but(found: Results, clean: Results) -> None:
    """The others as in a clean run; a check of the whole cluster that asks the hostile node too names it."""
    assert set(found) == set(clean)
    for key, one in found.items():
        if key[0] != HOSTILE and one != clean[key]:
            status, evidence = one
            named = _without_figures(HOSTILE) in evidence or "cluster" in evidence
            assert status in ("UNKNOWN", "FAIL", "WARN"), (key, one, clean[key])
            assert named, (key, one, clean[key])


def _harmless(ran: Ran) -> Ran:
    assert is_harmless(ran.out + ran.err, "\n\t"), ran
    assert "Traceback" not in ran.err, ran
    return ran


def _verify(site: Site, *, expect: int | None = None) -> dict[str, Any]:
    """The JSON document, its JUnit report read too."""
    junit = site.folder / "junit.xml"
    junit.unlink(missing_ok=True)
    ran = _harmless(site.cli("verify", str(site.file), "--json", "--junit", str(junit), expect=expect))
    document: dict[str, Any] = json.loads(ran.out)
    cases = list(Xml.parse(junit).getroot().iter("testcase"))
    assert len(cases) == len(document["results"])
    assert all(is_harmless(text, "\n\t") for text in (junit.read_text(), *strings_of(document)))
    return document


def _health(site: Site, *more: str, expect: int | None = None) -> dict[str, Any]:
    ran = _harmless(site.cli("health", str(site.file), "--json", *more, expect=expect))
    document: dict[str, Any] = json.loads(ran.out)
    assert all(is_harmless(text, "\n\t") for text in strings_of(document))
    return document


def _flat(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [result for node in document["nodes"] for result in node["results"]]


@pytest.mark.smoke
def test_verify_of_the_others_is_that_of_a_clean_run(site: Site) -> None:
    first = _verify(site)
    clean = _of(_verify(site)["results"])
    assert _of(first["results"]) == clean, "two clean runs agree"
    for kind, answer in THROUGH_THE_PROGRAM.items():
        with answering(site, answer):
            document = _verify(site, expect=4)
            shown = _harmless(site.cli("verify", str(site.file), expect=4))
        found = _of(document["results"])
        _same_but(found, clean)
        mine = {key: one for key, one in found.items() if key[0] == HOSTILE}
        assert {status for status, _ in mine.values()} <= {"UNKNOWN", "OUT OF SCOPE"}, (kind, mine)
        assert HOSTILE in shown.out


def test_a_node_that_answers_one_word_to_everything(site: Site) -> None:
    """It repeats what it is asked to repeat first, so that every check meets the garbage itself."""
    clean = _of(_verify(site)["results"])
    with answering(site, b"rackwright\n"):
        found = _of(_verify(site, expect=3)["results"])
    _same_but(found, clean)
    assert {status for (node, _, _), (status, _) in found.items() if node == HOSTILE} <= {
        "UNKNOWN",
        "OUT OF SCOPE",
        "FAIL",
        "WARN",
        "PASS",
    }


def test_health_of_the_others_is_that_of_a_clean_run(site: Site, tmp_path: Path) -> None:
    clean = _of(_flat(_health(site, "--save", str(tmp_path))))
    document = json.loads((tmp_path / f"{HOSTILE}.json").read_text())
    damaged = json.dumps(_damaged(document)).encode()
    for kind, answer in {**THROUGH_THE_PROGRAM, "its own document, damaged": damaged}.items():
        with answering(site, answer):
            reported = _health(site)
            shown = _harmless(site.cli("health", str(site.file), expect=None))
        found = _of(_flat(reported))
        assert {key: one for key, one in found.items() if key[0] != HOSTILE} == {
            key: one for key, one in clean.items() if key[0] != HOSTILE
        }, kind
        (mine,) = [node for node in reported["nodes"] if node["node"] == HOSTILE]
        assert mine["status"] == "UNKNOWN", kind
        assert {one["status"] for one in mine["results"]} <= {"UNKNOWN", "OUT OF SCOPE"}, (kind, mine)
        assert "UNKNOWN" in shown.out


def _damaged(value: Any) -> Any:
    """The same document with every text an escape sequence and every number beyond reason, its frame left."""
    sections = {name: _garbage(one) for name, one in value["sections"].items()}
    return {**value, "sections": {name: {**one, "ok": True} for name, one in sections.items()}}


def _garbage(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _garbage(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_garbage(one) for one in value] or [[[[]]]]
    return 10**400 if isinstance(value, str) else "\x1b[2J\x1b]0;owned\x07\u202e"


def test_why_has_unknown_parts_and_no_traceback(site: Site) -> None:
    for answer in THROUGH_THE_PROGRAM.values():
        with answering(site, answer):
            reported = _harmless(site.cli("why", str(site.file), HOSTILE, "--json", expect=4))
            shown = _harmless(site.cli("why", str(site.file), HOSTILE, expect=4))
        parts = {part["part"]: part for part in json.loads(reported.out)["parts"]}
        assert parts["health"]["unknown"]
        assert parts["declaration"]["unknown"]
        assert "UNKNOWN" in shown.out


def test_other_garbage(site: Site) -> None:
    """As above, without the start of the program."""
    with site.here():
        clean = _of(verify(site.cluster).to_json()["results"])
        for kind, answer in IN_PROCESS.items():
            with answering(site, answer):
                verified = verify(site.cluster)
                probed = health(site.cluster)
                explained = why(site.cluster, site.cluster.by_name[HOSTILE], site.file)
            _same_but(_of(verified.to_json()["results"]), clean)
            of_it = {node.node: node for node in probed.nodes}
            assert of_it[HOSTILE].status is Status.UNKNOWN, kind
            assert explained.unknown, kind
            for document in (verified.to_json(), probed.to_json(), explained.to_json()):
                json.dumps(document, allow_nan=False)
                assert all(is_harmless(text, "\n\t") for text in strings_of(document)), kind
