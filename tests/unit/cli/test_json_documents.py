"""Documents of `--json`: each has a kind, a version and a schema, and nothing is printed past them.

That real output matches is checked wherever a test prints or makes a document: tests/unit/conftest.py.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import rackwright.cli
from rackwright.cli.json_output import VERSION, print_document
from rackwright.engine.run import Applied
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import ApplyResult, NodeOutcome, NodePlan, PlannedOperation, PlanResult
from rackwright.schemas.known import DOCUMENTS, check_document, names, schema
from tests import json_schemas
from tests.unit.clusterfile import base_file

COMMANDS = sorted(Path(rackwright.cli.__file__).parent.glob("*.py"))
OWN_SCHEMA = {"plan.py", "schema.py", "json_output.py"}
"""plan.json is read again by `apply --plan` and has a schema of its own."""


def printed_names(tree: ast.AST) -> set[str]:
    """First arguments of print_document, and names of documents that are handed to what calls it."""
    return {
        node.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in ("print_document", "_print_answers")
        for node in ast.walk(call)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in DOCUMENTS
    }


def dumps(tree: ast.AST) -> list[str]:
    """Calls of json.dumps that print."""
    return [
        ast.unparse(call)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and ast.unparse(call.func) in ("typer.echo", "say", "say_exactly", "print")
        and "json.dumps" in ast.unparse(call)
    ]


def test_every_document_is_printed_by_a_command_and_has_a_schema():
    printed = {name for path in COMMANDS for name in printed_names(ast.parse(path.read_text()))}
    assert printed == set(DOCUMENTS) - {"accept"}  # which `accept` writes as report.json


def test_no_command_prints_json_past_it():
    found = {path.name: dumps(ast.parse(path.read_text())) for path in COMMANDS}
    assert {name for name, calls in found.items() if calls} == OWN_SCHEMA


def test_what_docs_has_of_them_is_current():
    expected = json_schemas.files()
    assert set(json_schemas.FOLDER.glob("*.json")) == set(expected) - {json_schemas.PAGE}
    for path, text in expected.items():
        assert path.read_text() == text, "run: python -m tests.json_schemas"


def test_the_schemas_are_listed_and_printed(rackwright):
    listed = rackwright("schema", "--list").out.splitlines()
    assert [line.split()[0] for line in listed] == list(names())
    assert json.loads(rackwright("schema", "verify").out) == schema("verify")
    assert rackwright("schema", "--plan").out == rackwright("schema", "plan").out
    wrong = rackwright("schema", "verfy")
    assert (wrong.status, wrong.err) == (
        1,
        "error: No document is named verfy.\nhint: did you mean `verify`?\n",
    )


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_says_what_it_is(name: str):
    model = DOCUMENTS[name][1]
    assert re.match(r"`[a-z][a-z -]*", model.__doc__ or ""), "its docstring begins with the command"
    own = schema(name)
    properties = own.get("properties") or own["$defs"][own["$ref"].rpartition("/")[2]]["properties"]
    assert {"kind", "version"} <= set(properties)


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        ({"more": 1}, "more: Extra inputs are not permitted"),
        ({"node": 7}, "node: Input should be a valid string"),
        ({"kind": "rackwright.verify"}, "kind: Input should be 'rackwright.render'"),
        ({"version": 2}, "version: Input should be 1"),
    ],
)
def test_a_document_that_is_another_is_refused(change: dict[str, object], mistake: str):
    right = {"kind": "rackwright.render", "version": VERSION, "cluster": "lab", "node": "n1", "files": {}}
    check_document("render", json.dumps(right))
    with pytest.raises(ValueError, match=re.escape(mistake)):
        check_document("render", json.dumps({**right, **change}))
    with pytest.raises(ValueError, match="cluster: Field required"):
        check_document("render", json.dumps({key: value for key, value in right.items() if key != "cluster"}))


def test_a_command_that_prints_another_document_fails_its_test():
    with pytest.raises(ValueError, match="cluster: Field required"):
        print_document("render", {"node": "n1", "files": {}})


def test_an_apply_as_a_document(capsys: pytest.CaptureFixture[str]):
    operation = PlannedOperation("base", "Write it", (Change("file", "/x", None, "file 644 root:root"),), ())
    plan = PlanResult(
        "lab",
        "lab.yaml",
        "",
        {"n1": NodePlan("n1", (operation,)), "n2": NodePlan("n2", error="lost", unreachable=True)},
    )
    due = (Change("reboot", "running kernel", "6.1", "6.12"),)
    outcomes = {"n1": NodeOutcome("n1", True, (operation,), seconds=1.234, reboot=due)}
    for result in (None, ApplyResult("lab", outcomes)):
        print_document("apply", Applied(plan, result, run="r1").to_json())
        found = json.loads(capsys.readouterr().out)
        assert (found["kind"], found["version"], found["planned_changes"]) == ("rackwright.apply", 1, 1)
        assert (found["applied"], found["unknown"]) == (result is not None, {"n2": "lost"})
        assert found["exit_code"] == (4 if result is None else 2)
    assert found["nodes"] == [
        {"node": "n1", "ok": True, "changed": 1, "seconds": 1.23, "unreachable": False, "error": None,
         "reboot": [due[0].to_json() | {"diff": []}]},
    ]  # fmt: skip


@pytest.mark.parametrize("options", [[], ["-v"]])
def test_with_json_the_plan_goes_to_standard_error(
    rackwright, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
):
    file = tmp_path / "demo.yaml"
    file.write_text(base_file.change())
    operation = PlannedOperation("base", "Write it", (Change("file", "/x", None, "file 644 root:root"),), ())
    plan = PlanResult("demo", str(file), "", {"n1": NodePlan("n1", (operation,))})

    def applied(_cluster: object, *, agree: Callable[[PlanResult], bool], **_: object) -> Applied:
        done = {"n1": NodeOutcome("n1", True, (operation,))}
        return Applied(plan, ApplyResult("demo", done) if agree(plan) else None)

    monkeypatch.setattr("rackwright.cli.apply.apply", applied)
    monkeypatch.setattr("rackwright.cli.apply.update_digests", lambda *_: None)
    result = rackwright("apply", file, "--yes", "--json", *options)
    assert result.status == 0
    assert json.loads(result.out)["nodes"][0]["changed"] == 1
    assert "n1: Write it" in result.err
    assert "1 of 1 nodes are as declared" in result.err
