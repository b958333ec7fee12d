"""Metrics that exist: recorded from exporters, named in the code of our own, or made by our own rules."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import promql_parser

from rackwright.alerts.catalogue import GROUPS
from rackwright.alerts.declared import declared_groups
from rackwright.alerts.rule import Recording
from rackwright.backup import metrics as backup
from rackwright.drift.prometheus import push_metrics
from rackwright.drift.states import Found, Known, State
from rackwright.health.guard import metrics as health
from tests.unit.dashboards.site import large

ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "tests" / "unit" / "alerts" / "recorded"
"""What exporters serve: recorded from them, or names alone where their hardware was not to be had."""
UNRECORDED = Path(__file__).parent / "unrecorded.prom"
OF_PROMETHEUS = {"ALERTS", "up", "scrape_duration_seconds"}
"""Prometheus makes these itself."""
OWN_EXPORTERS = ("rackwright/workload/slurm/metrics", "rackwright/own_metrics")
_SAMPLE = re.compile(r"^(?:# TYPE )?([a-zA-Z_:][a-zA-Z0-9_:]*)[ {]", re.MULTILINE)
_OWN_NAME = re.compile(r"(slurm|rackwright)_[a-z0-9_]+")


@cache
def known_metrics() -> frozenset[str]:
    """Names."""
    recorded = [path.read_text() for path in sorted(RECORDED.glob("*.prom"))]
    assert recorded, "nothing was recorded"
    recorded.append(UNRECORDED.read_text())
    rules = [
        rule
        for group in (*GROUPS, *declared_groups(large(), carbon_grams_per_kwh=300))
        for rule in group.rules
    ]
    return frozenset(
        {
            *OF_PROMETHEUS,
            *(name for text in recorded for name in _SAMPLE.findall(text)),
            *(rule.record for rule in rules if isinstance(rule, Recording)),
            *_names_in_code(),
            *_SAMPLE.findall(_drift()),
            *_SAMPLE.findall(
                backup.text("test", "head1", dict.fromkeys(("success", "attempt", "seconds"), 1))
            ),
            *(f"rackwright_health_{name}" for name in health._HELP),
        }
    )


def _names_in_code() -> set[str]:
    """Names that our own exporters give their metrics."""
    files = [path for folder in OWN_EXPORTERS for path in sorted((ROOT / folder).glob("*.py"))]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text()))]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {text for text in texts if _OWN_NAME.fullmatch(text)}


def _drift() -> str:
    found = {"gpu1": Found(State.DRIFTED, count=1, operations={"base": 1})}
    return push_metrics("test", found, {"gpu1": Known(State.DRIFTED, 1.0, 1.0)}, 1.0, 2.0)


def selected(node: Any) -> set[str]:
    """Names of the metrics of a parsed expression."""
    found: set[str] = set()

    def visit(one: Any) -> bool:
        if isinstance(one, promql_parser.VectorSelector):
            found.add(one.name)
        if isinstance(one, promql_parser.MatrixSelector):
            found.add(one.vector_selector.name)
        return True

    promql_parser.walk(node, visit)
    return found
