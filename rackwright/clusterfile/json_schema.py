"""The JSON Schema of the cluster file, every role's options included: what editors complete from."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from rackwright.clusterfile.file import ClusterFile, NodeGroup
from rackwright.clusterfile.roles import Roles

Schema = dict[str, Any]

_REF = "#/$defs/"


def cluster_schema(known: Roles | None = None) -> Schema:
    """JSON Schema (draft 2020-12) of version 1 of the cluster file, with these roles; None: the shipped ones."""
    known = known or Roles()
    roles = {role: known.options_class(role) for role in known.names}
    models: tuple[type[BaseModel], ...] = (ClusterFile, NodeGroup, *roles.values())
    by_model, whole = models_json_schema(
        [(model, "validation") for model in models], ref_template=_REF + "{model}"
    )
    defs: Schema = whole["$defs"]
    refs = {model: by_model[model, "validation"]["$ref"] for model in models}
    file, group = (_target(defs, refs[model]) for model in (ClusterFile, NodeGroup))
    file["properties"]["roles"] |= {
        "additionalProperties": False,
        "properties": {
            role: {"anyOf": [{"$ref": refs[model]}, {"type": "null"}]} for role, model in roles.items()
        },
    }
    group["properties"]["options"] |= {
        "additionalProperties": False,
        "properties": {role: _partial({"$ref": refs[model]}, defs) for role, model in roles.items()},
    }
    file["title"] = "rackwright cluster file"
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **file,
        "$defs": {name: defs[name] for name in sorted(defs) if defs[name] is not file},
    }


def _target(defs: Schema, ref: str) -> Schema:
    target: Schema = defs[ref.removeprefix(_REF)]
    return target


def _partial(schema: Schema, defs: Schema) -> Schema:
    """The schema of overrides: no key of a mapping is required; lists are replaced, so theirs are."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REF)
        if defs[name].get("type") != "object":
            return schema
        partial = f"{name}Overrides"
        if partial not in defs:
            defs[partial] = {}  # before its members: they may refer to it
            defs[partial] |= _partial(defs[name], defs)
        return {**schema, "$ref": _REF + partial}
    found = {key: value for key, value in schema.items() if key != "required"}
    for mapping in ("properties", "patternProperties"):
        if mapping in found:
            found[mapping] = {key: _partial(value, defs) for key, value in found[mapping].items()}
    if isinstance(found.get("additionalProperties"), dict):
        found["additionalProperties"] = _partial(found["additionalProperties"], defs)
    if "anyOf" in found:
        found["anyOf"] = [_partial(member, defs) for member in found["anyOf"]]
    return found
