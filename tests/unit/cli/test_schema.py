"""rackwright schema, and the schema that editors read beside the example files."""

from __future__ import annotations

import json

import pytest

from rackwright.clusterfile.roles import options_class, role_names
from tests.examples import INVENTORY, cluster_files

COMMITTED = INVENTORY / "cluster.schema.json"


@pytest.fixture
def schema(rackwright):
    return json.loads(rackwright("schema").out)


def test_the_committed_schema_is_current(rackwright):
    assert rackwright("schema").out == COMMITTED.read_text(encoding="utf-8"), (
        "run: rackwright schema > inventory/cluster.schema.json"
    )


@pytest.mark.parametrize("file", cluster_files(), ids=lambda file: file.stem)
def test_the_example_files_point_to_it(file):
    first = file.read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=cluster.schema.json"


def target(schema, ref):
    return schema["$defs"][ref["$ref"].removeprefix("#/$defs/")]


def test_every_role_and_every_option_is_in_it(schema):
    roles = schema["properties"]["roles"]
    assert roles["additionalProperties"] is False
    assert set(roles["properties"]) == set(role_names())
    for role, kinds in roles["properties"].items():
        reference, nothing = kinds["anyOf"]
        assert nothing == {"type": "null"}
        assert set(target(schema, reference)["properties"]) == set(options_class(role).model_fields)


def test_overrides_require_nothing(schema):
    options = schema["$defs"]["NodeGroup"]["properties"]["options"]
    for reference in options["properties"].values():
        assert "required" not in target(schema, reference)


def test_addresses_have_a_short_form(schema):
    short, whole = schema["$defs"]["AddressRule"]["anyOf"]
    assert short["type"] == "string"
    assert set(whole["properties"]) == {"first", "step"}


def test_every_reference_has_a_target(schema):
    def references(value):
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for inner in value.values():
                yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    assert {ref.removeprefix("#/$defs/") for ref in references(schema)} <= set(schema["$defs"])
