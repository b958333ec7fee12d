"""What an option may be, as a reader says it, from its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.docs_site.markdown import code

Schema = Mapping[str, Any]
_REF = "#/$defs/"
_PLAIN: dict[str, str] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
}


def type_text(schema: Schema, links: Mapping[str, str]) -> str:
    """A phrase such as "integer, 1 to 256" or "list of [Journal](#journal)".

    `links` has the anchor of each named object of the same page, by its name in `$defs`.
    """
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REF)
        return f"[{name}]({links[name]})" if name in links else name
    if "const" in schema:
        return code(json.dumps(schema["const"]))
    if "enum" in schema:
        return " or ".join(code(str(value)) for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(type_text(member, links) for member in _not_null(schema[key])))
    if len(schema.get("allOf", ())) == 1:
        return type_text(schema["allOf"][0], links)
    return _simple(schema, links)


def _simple(schema: Schema, links: Mapping[str, str]) -> str:
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items")
        inside = type_text(items, links) if isinstance(items, Mapping) and items else "values"
        return f"list of {inside}{_bounds(schema, 'minItems', 'maxItems')}"
    if kind == "object":
        values = schema.get("additionalProperties")
        return (
            f"mapping to {type_text(values, links)}" if isinstance(values, Mapping) and values else "mapping"
        )
    if isinstance(kind, list):
        return " or ".join(_PLAIN.get(one, str(one)) for one in kind if one != "null")
    text = _PLAIN.get(str(kind), "any value")
    if kind == "string" and schema.get("format"):
        return f"{text} ({schema['format']})"
    return text + _bounds(schema, "minimum", "maximum")


def _not_null(members: list[Schema]) -> Iterator[Schema]:
    yield from (member for member in members if member.get("type") != "null")


def _bounds(schema: Schema, low: str, high: str) -> str:
    least, most = schema.get(low), schema.get(high)
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    ends = (
        f"{least} to {most}" if least is not None and most is not None else "",
        f"at least {least}" if least is not None and most is None else "",
        f"at most {most}" if most is not None and least is None else "",
        f"above {above}" if above is not None else "",
        f"below {below}" if below is not None else "",
    )
    found = ", ".join(end for end in ends if end)
    return f", {found}" if found else ""


def default_text(schema: Schema, *, required: bool) -> str:
    """The default as it would be written in a cluster file; "required" where there is none."""
    if required:
        return "**required**"
    if "default" not in schema:
        return "may be left out"
    value = schema["default"]
    if value is None:
        return "none by default"
    shown = value if isinstance(value, str) and value else json.dumps(value)
    return f"default {code(shown)}" if len(shown) <= 80 else "has a default"


def named_objects(schema: Schema) -> dict[str, Schema]:
    """Objects of `$defs` that have keys of their own to explain."""
    return {name: one for name, one in schema.get("$defs", {}).items() if one.get("properties")}


def is_nullable(schema: Schema) -> bool:
    """Whether null may be written for it."""
    return any(member.get("type") == "null" for member in schema.get("anyOf", ()))
