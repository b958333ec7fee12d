"""DCGM: the host engine's health watches, and the saved result of a diagnostic."""

from __future__ import annotations

import json
from typing import Any

from rackwright.health.guard import places
from rackwright.health.probe.source import Source, Unavailable

SECONDS = 5.0
OVERALL = "Overall Health"
ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
"""DCGM 4, DCGM 3."""


def dcgm(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Results of the host engine's health watches; `dcgm` in the request is its address."""
    engine = request.get("dcgm")
    if not engine:
        raise Unavailable("no role declares DCGM on this node")
    return parse_health(source.run(["dcgmi", "health", "--host", engine, "-c", "-j"], SECONDS))


def dcgm_diag(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """The result of `dcgmi diag -j` that the site saved on the node; None if there is none."""
    if not source.exists(places.DIAG):
        return {"at": None, "results": []}
    return {"at": source.modified(places.DIAG), "results": parse_diag(source.text(places.DIAG))}


def parse_health(text: str) -> dict[str, Any]:
    """Read `dcgmi health -c -j`: the overall health, and every incident with its entity and system."""
    body = _object(_json(text, "dcgmi health -c -j").get("body"))
    incidents = []
    for group, found in body.items():
        for entity, details in _object(_object(found).get("children")).items():
            errors = _object(_object(_object(details).get("children")).get("Errors"))
            for system, error in _object(errors.get("children")).items():
                lines = _object(error).get("overflow")
                incidents.append(
                    {
                        "entity": f"{group} {entity}",
                        "system": system,
                        "health": _object(error).get("value"),
                        "text": " ".join(str(line).strip() for line in lines)
                        if isinstance(lines, list)
                        else None,
                    }
                )
    return {"overall": _object(body.get(OVERALL)).get("value"), "incidents": incidents}


def parse_diag(text: str) -> list[dict[str, Any]]:
    """Read `dcgmi diag -r LEVEL -j` of DCGM 3 or 4: one entry for each test and entity."""
    parsed = _json(text, "dcgmi diag -j")
    root = next((_object(parsed[name]) for name in ROOTS if name in parsed), {})
    if root.get("runtime_error"):
        raise Unavailable(f"dcgmi diag did not run: {str(root['runtime_error']).strip()[:300]}")
    results = [
        _result(_object(test).get("name"), _object(result))
        for category in _list(root.get("test_categories"))
        for test in _list(_object(category).get("tests"))
        for result in _list(_object(test).get("results"))
    ]
    if not results:
        raise Unavailable("`dcgmi diag -j` lists no test")
    return results


def _result(test: Any, result: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    group, number = result.get("entity_group", "GPU"), result.get("entity_id")
    if number is None:
        number = result.get("gpu_id", result.get("gpu_ids"))
    warnings = [one if isinstance(one, dict) else {"warning": one} for one in _list(result.get("warnings"))]
    severities = [one["error_severity"] for one in warnings if type(one.get("error_severity")) is int]
    return {
        "test": test,
        "entity": f"{group} {number}" if number is not None else "node",
        "status": str(result.get("status")).lower(),
        "severity": max(severities, key=_hardness, default=None),
        "text": "; ".join(str(one.get("warning")).strip() for one in warnings),
    }


def _hardness(severity: int) -> int:
    """DCGM's severities ascend, except `configuration` (5)."""
    return 0 if severity == 5 else severity


def _json(text: str, command: str) -> dict[str, Any]:
    """The JSON object in a command's output; notices may precede it."""
    try:
        parsed, _ = json.JSONDecoder().raw_decode(text[max(text.find("{"), 0) :])
    except ValueError as error:
        raise Unavailable(f"`{command}` did not print JSON: {error}") from None
    return _object(parsed)


def _object(value: Any) -> dict[str, Any]:  # noqa: ANN401
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:  # noqa: ANN401
    if isinstance(value, str):
        return [value]
    return [one for one in value if one is not None] if isinstance(value, list) else []
