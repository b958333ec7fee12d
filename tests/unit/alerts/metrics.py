"""Which metrics a job has: as recorded from exporters, and as rackwright's own programs write them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import promql_parser

from rackwright.alerts.rule import Alert, Recording
from rackwright.alerts.text import with_thresholds
from rackwright.backup.metrics import text as backup_text
from rackwright.drift.prometheus import push_metrics
from rackwright.drift.states import Found, Known, State
from rackwright.health.guard.metrics import metrics as health_text
from rackwright.logs.keeper_metrics import metrics as keeper_text

RECORDED = Path(__file__).parent / "recorded"
ANY_JOB = frozenset({"up"})
"""Prometheus makes these of every target."""
OURS = re.compile(r"rackwright_declared_[a-z_]+|[a-z]+:[a-z_]+:[a-z]+")
"""Names of recording rules."""
SIMULATED = "dcgm_lab"
"""What the lab's stand-in for dcgm-exporter serves proves nothing about dcgm-exporter."""


def names_in(text: str) -> frozenset[str]:
    """Names of samples, and of families that are declared without a sample."""
    samples = re.findall(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)[ {]", text, re.MULTILINE)
    return frozenset(samples) | frozenset(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))


@cache
def of_job(job: str) -> frozenset[str]:
    """Every metric of a job: of its recorded files, JOB.prom and JOB-PART.prom, else of the contract."""
    files = [path for path in RECORDED.glob("*.prom") if path.stem.partition("-")[0] == job]
    found = frozenset().union(*(names_in(path.read_text()) for path in files))
    for line in (RECORDED / "contract.txt").read_text().splitlines():
        of, _, name = line.partition(" ")
        if of == job and (job == "node" or not (RECORDED / f"{job}.prom").exists()):
            found |= {name}
    return found | (_textfiles() if job == "node" else frozenset())


def _textfiles() -> frozenset[str]:
    """What rackwright's programs write for node_exporter, by running them."""
    last = {
        "memory": {"drained": False, "alert": None, "clean": 3, "reboots": []},
        "results": [],
        "policy": {"act": True},
        "would_drain": None,
        "gpus": {"at": None},
        "at": 1.0,
        "seconds": 1.0,
    }
    drifted = {"gpu1": Found(State.DRIFTED, ("x",), 1, {"base": 1})}
    return (
        names_in(health_text(last))
        | names_in(push_metrics("site", drifted, {"gpu1": Known(State.DRIFTED, 1.0)}, 1.0, 1.0))
        | names_in(keeper_text({"folder": "/nonexistent", "sources": "/nonexistent"}, 1.0, False, 0))
        | names_in(backup_text("site", "head1", {"success": 1.0, "attempt": 1.0, "error": None}))
    )


def read_by(rule: Alert | Recording) -> frozenset[str]:
    """Names of all metrics in a rule's expression."""
    text = with_thresholds(rule.expr, rule) if isinstance(rule, Alert) else rule.expr
    return frozenset(_names(promql_parser.parse(text)))


def _names(expression: promql_parser.Expr) -> list[str]:
    found: list[str] = []

    def visit(node: object) -> bool:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node.name or "")
        return True

    promql_parser.walk(expression, visit)
    return found
