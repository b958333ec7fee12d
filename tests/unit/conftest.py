"""What all fast tests share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from rackwright.cli import json_output

_REPORTS = (
    ("rackwright.accept.report", "AcceptReport", "accept"),
    ("rackwright.bmc.status", "FleetStatus", "bmc.status"),
    ("rackwright.burnin.report", "BurninReport", "burnin"),
    ("rackwright.fabric.check", "FabricReport", "fabric.check"),
    ("rackwright.health.run", "FleetHealth", "health"),
    ("rackwright.health.would", "FleetWould", "health.would"),
    ("rackwright.logs.report", "LogsReport", "logs"),
    ("rackwright.storage.report", "BenchReport", "storage"),
    ("rackwright.verify.report", "VerifyReport", "verify"),
    ("rackwright.why.ask", "Explanation", "why"),
    ("rackwright.engine.run", "Applied", "apply"),
)
"""(module, class, name of the document that its `to_json` gives)."""


@pytest.fixture(autouse=True)
def _documents_match_their_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every document that a test has made or printed is checked against its model."""

    def checked(name: str, document: dict[str, Any]) -> dict[str, Any]:
        from rackwright.schemas.known import check_document  # seconds, which most tests do not need

        check_document(name, json.dumps(document))
        return document

    def checking(name: str, to_json: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
        def wrapped(report: Any) -> dict[str, Any]:
            document = to_json(report)
            checked(name, {"kind": f"rackwright.{name}", "version": json_output.VERSION, **document})
            return document

        return wrapped

    monkeypatch.setattr(json_output, "checked", checked)
    for module, of, name in _REPORTS:
        if module in sys.modules:  # a test that does not load a room makes none of its reports
            report = getattr(sys.modules[module], of)
            monkeypatch.setattr(report, "to_json", checking(name, report.to_json))
