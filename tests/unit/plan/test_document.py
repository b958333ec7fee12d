"""plan.json is what its schema says: of every field, of every plan, and of nothing else."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from rackwright.plan.changes import Change, Kind, caused_by
from rackwright.plan.document import (
    ChangeDocument,
    NodeDocument,
    OperationDocument,
    PlanDocument,
    check_plan,
    plan_schema,
)
from rackwright.plan.node_plan import NodePlan, PlannedOperation, PlanResult

DOCS = Path(__file__).parents[3] / "docs"
CONF = "/etc/slurm/slurm.conf"

WRITE = PlannedOperation(
    "slurm", "Write it", (Change("file", CONF, "file 644 root:root", "file 644 root:root", ("+x",)),), ("cp",)
)
RELOAD = PlannedOperation(
    "slurm",
    "Run slurmd",
    (Change("unit", "slurmd.service", "running", "reloaded", because=caused_by((CONF, "/etc/x"))),),
    ("systemctl reload slurmd.service",),
)
PLAN = PlanResult(
    "c",
    "c.yaml",
    "0" * 64,
    {
        "a": NodePlan("a", (WRITE, RELOAD), evaluated=2, executions=1),
        "b": NodePlan("b", error="off", unreachable=True),
    },
    code="1" * 64,
)


@pytest.fixture
def document():
    return json.loads(json.dumps(PLAN.to_json()))


def test_the_committed_schema_is_current():
    committed = json.loads((DOCS / "plan.schema.json").read_text())
    assert committed == plan_schema(), "run: rackwright schema --plan > docs/plan.schema.json"


def test_the_program_prints_it():
    from typer.testing import CliRunner

    from rackwright.cli import app

    assert json.loads(CliRunner().invoke(app, ["schema", "--plan"]).stdout) == plan_schema()


@pytest.mark.parametrize(
    ("code", "model", "kept_out", "added"),
    [
        (Change, ChangeDocument, {"content"}, set()),
        (PlannedOperation, OperationDocument, set(), {"disruptive", "gates"}),
        (NodePlan, NodeDocument, set(), set()),
        (PlanResult, PlanDocument, {"sha256"}, {"version", "rackwright", "file_sha256", "changes"}),
    ],
)
def test_the_schema_has_the_fields_of_the_code(code, model, kept_out, added):
    assert set(model.model_fields) == {field.name for field in fields(code)} - kept_out | added


def test_every_field_is_explained():
    schema = plan_schema()
    models = [schema, *schema["$defs"].values()]
    bare = [
        name
        for model in models
        for name, field in model["properties"].items()
        if "description" not in field and name not in ("node", "changes", "operations")
    ]
    assert not bare
    assert all(model["additionalProperties"] is False for model in models)
    assert all(set(model["required"]) == set(model["properties"]) for model in models)


def test_a_plan_is_as_its_schema_says_and_survives_the_way(document):
    check_plan(document)
    assert PlanResult.from_json(document) == PLAN


def test_what_follows_from_an_operation_stands_with_it(document):
    first, second = document["nodes"][0]["operations"]
    assert first["gates"] == ["slurm: Run slurmd (slurmd.service reloaded)"]
    assert second["gates"] == []
    assert RELOAD.changes[0].is_because_of("/etc/x/in/a/folder")
    assert not RELOAD.changes[0].is_because_of("/etc/slurm")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda plan: plan.update(schema=2), "schema: Input should be 1"),
        (lambda plan: plan.update(extra=1), "extra: Extra inputs are not permitted"),
        (lambda plan: plan.pop("code"), "code: Field required"),
        (lambda plan: plan["nodes"][0].update(executions="1"), "nodes.0.executions: Input should be"),
        (lambda plan: plan["nodes"][0]["operations"][0].pop("gates"), "nodes.0.operations.0.gates: Field"),
        (
            lambda plan: plan["nodes"][0]["operations"][0]["changes"][0].update(kind="mood"),
            "nodes.0.operations.0.changes.0.kind: Input should be 'file'",
        ),
    ],
)
def test_anything_else_is_refused(document, spoil, said):
    spoil(document)
    with pytest.raises(ValueError, match=re.escape(said)):
        check_plan(document)


def test_the_page_has_every_kind():
    kinds = (DOCS / "plan.md").read_text().partition("## Before and after")[2]
    rows = set(re.findall(r"^\| `(\w+)` \|", kinds, re.MULTILINE))
    assert rows == set(get_args(Kind))
