"""How each level of a node and each status of a check looks, with the words of the legend."""

from __future__ import annotations

from typing import NamedTuple

from rackwright.drawing.model import Look
from rackwright.live.findings import Level
from rackwright.status import Status


class Shown(NamedTuple):
    """A look with its words."""

    look: Look
    label: str
    meaning: str


LEVELS: dict[Level, Shown] = {
    Level.DOWN: Shown(Look.GONE, "down", "the workload manager finds it broken or silent"),
    Level.FAILING: Shown(
        Look.FAILING, "failing", "a health check asks for repair, or a critical alert fires"
    ),
    Level.DRAINED: Shown(Look.PAUSED, "drained", "out of service by a decision"),
    Level.UNKNOWN: Shown(Look.UNKNOWN, "unknown", "something that should be known is not"),
    Level.WARNING: Shown(Look.WARNING, "warning", "in service; drifted, or with a warning"),
    Level.BUSY: Shown(Look.BUSY, "busy", "in service, runs jobs; all known and good"),
    Level.GOOD: Shown(Look.GOOD, "good", "in service; all known and good"),
}
DECLARED = Shown(Look.NEUTRAL, "declared", "not compared with the node")
STATUSES: dict[Status, Shown] = {
    Status.FAIL: Shown(Look.FAILING, "fail", "a check failed"),
    Status.UNKNOWN: Shown(Look.UNKNOWN, "unknown", "a check could not find out"),
    Status.WARN: Shown(Look.WARNING, "warn", "a check has a reservation"),
    Status.PASS: Shown(Look.GOOD, "pass", "every check that applies passed"),
    Status.OUT_OF_SCOPE: Shown(Look.OUTSIDE, "out of scope", "no check applies to it"),
}
