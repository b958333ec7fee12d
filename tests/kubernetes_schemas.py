"""Whether objects are what the API servers of some releases accept, by their published schemas; without a server.

    mistakes(objects, "1.34")   ->   ["DaemonSet/x: spec.template: 'spec' is a required property", ...]

The folder kubernetes_schemas_data has extracts without descriptions, in which a field that the schema does not name is a
mistake: of Kubernetes' own OpenAPI document for each release of `RELEASES`, and of custom resources' openAPIV3Schema. CEL rules,
defaults and admission are not part of them: what only a server decides is proven on a server. Made by

    python -m tests.kubernetes_schemas kubernetes 1.34 FILE      api/openapi-spec/swagger.json, or _definitions.json of PyPI's
                                                                 kubernetes-validate (13 releases; 72 MB, so no dependency)
    python -m tests.kubernetes_schemas crds kueue-0.19.2 FILE... YAML of CustomResourceDefinitions
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft7Validator

FOLDER = Path(__file__).parent / "kubernetes_schemas_data"
RELEASES = tuple(
    sorted(path.name.split("-")[1].removesuffix(".json.gz") for path in FOLDER.glob("kubernetes-*"))
)
_KEPT = frozenset(
    {
        *(
            "$ref",
            "type",
            "enum",
            "required",
            "items",
            "pattern",
            "minimum",
            "maximum",
            "minLength",
            "maxLength",
        ),
        *("minItems", "maxItems", "uniqueItems", "format", "anyOf", "allOf", "oneOf", "not"),
    }
)
_LOOSE: Mapping[str, Mapping[str, Any]] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["string", "integer"]},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"]},
}
"""Their schemas say string; the API takes numbers too."""


def mistakes(objects: Iterable[Mapping[str, Any]], release: str) -> list[str]:
    """What a server of this release would refuse in them; an object of a kind that no extract has is a mistake."""
    found = []
    for item in objects:
        name = f"{item.get('kind')}/{item.get('metadata', {}).get('name')}"
        key = f"{item.get('apiVersion')}/{item.get('kind')}"
        validator = _validators(release).get(key)
        if validator is None:
            found.append(f"{name}: Kubernetes {release} has no {key}")
            continue
        plain = json.loads(json.dumps(item, default=dict))
        for error in sorted(
            validator.iter_errors(plain), key=lambda error: list(map(str, error.absolute_path))
        ):
            found.append(f"{name}: {'.'.join(map(str, error.absolute_path))}: {error.message[:200]}")
    return found


@cache
def _validators(release: str) -> dict[str, Draft7Validator]:
    core = _read(f"kubernetes-{release}")
    found = {}
    for name, definition in core["definitions"].items():
        for kind in definition.get("kinds", ()):
            found[kind] = Draft7Validator(
                {"$ref": f"#/definitions/{name}", "definitions": core["definitions"]}
            )
    for path in sorted(FOLDER.glob("*.json.gz")):
        if not path.name.startswith("kubernetes-"):
            for kind, schema in _read(path.name.removesuffix(".json.gz")).items():
                found[kind] = Draft7Validator(schema)
    return found


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    return found


def core_extract(document: Mapping[str, Any]) -> dict[str, Any]:
    """An OpenAPI document of Kubernetes, strict and without prose."""
    definitions = document.get("definitions") or document["$defs"]
    found = {}
    for name, schema in definitions.items():
        made = dict(_LOOSE[name]) if name in _LOOSE else _strict(schema)
        kinds = schema.get("x-kubernetes-group-version-kind", [])
        if len(kinds) == 1:  # options of requests have one for each group
            kind = kinds[0]
            group = f"{kind['group']}/" if kind["group"] else ""
            made["kinds"] = [f"{group}{kind['version']}/{kind['kind']}"]
        found[name] = made
    return {"definitions": found}


def crd_extract(text: str) -> dict[str, Any]:
    """Each version of each CustomResourceDefinition in a text."""
    found = {}
    for document in yaml.safe_load_all(text):
        if not document or document.get("kind") != "CustomResourceDefinition":
            continue
        spec = document["spec"]
        for version in spec["versions"]:
            schema = _strict(version["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = {"type": "object"}
            found[f"{spec['group']}/{version['name']}/{spec['names']['kind']}"] = schema
    return found


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["string", "integer"]}
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            found[key] = {name: _strict(one) for name, one in value.items()}
        elif key == "additionalProperties" and isinstance(value, dict):
            found[key] = _strict(value)
        elif key in ("anyOf", "allOf", "oneOf"):
            found[key] = [_strict(one) for one in value]
        elif key in ("items", "not"):
            found[key] = _strict(value)
        elif key == "$ref":
            found[key] = f"#/definitions/{value.split('/')[-1]}"
        elif key == "type":
            found[key] = _type(value)
        elif key == "pattern":
            if _compiles(value):
                found[key] = value
        elif key in _KEPT:
            found[key] = value
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in found
    if "properties" in found and not open_ended:
        found["additionalProperties"] = False
    return found


def _type(given: str | Sequence[str]) -> Any:
    kinds = [given] if isinstance(given, str) else [kind for kind in given if kind != "null"]
    return kinds[0] if len(kinds) == 1 else kinds


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _write(name: str, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    (FOLDER / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def main(arguments: Sequence[str]) -> None:
    """Write an extract anew."""
    what, name, *paths = arguments
    if what == "kubernetes":
        _write(f"kubernetes-{name}", core_extract(json.loads(Path(paths[0]).read_text())))
    else:
        _write(name, crd_extract("\n---\n".join(Path(path).read_text() for path in paths)))


if __name__ == "__main__":
    main(sys.argv[1:])
