"""Readings of the health probe on every node during a soak: temperatures, throttling, and new failures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rackwright.burnin.finding import Finding
from rackwright.health.records import describe
from rackwright.health.run import FleetHealth
from rackwright.status import Status

GPUS_MAX = 128
HARD = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
"""Throttle reasons of the board; sw_power_cap is normal under this load."""


@dataclass(frozen=True)
class Reading:
    """All nodes at one time."""

    at: str
    """UTC."""
    hottest_c: float | None = None
    hottest: str | None = None
    """The GPU, e.g. `GPU 3 of gpu001`."""
    throttled: tuple[str, ...] = ()
    """GPUs whose clocks the board holds down, with the reason."""
    failures: tuple[tuple[str, str, str], ...] = ()
    """Node, check and evidence of each check that fails."""
    unread: tuple[tuple[str, str], ...] = ()
    """Nodes without a document, and why."""


def reading_of(health: FleetHealth, at: datetime | None = None) -> Reading:
    """The part of a health run that a soak keeps."""
    hottest: tuple[float, str] | None = None
    throttled = []
    for node in health.nodes:
        for gpu in _gpus(node.document):
            label = f"GPU {describe(gpu.get('index'))} of {node.node}"
            heat: Any = _of(gpu, "temperature").get("gpu_c")
            if type(heat) in (int, float) and -60 < heat < 200 and (hottest is None or heat > hottest[0]):
                hottest = float(heat), label
            reasons = _of(gpu, "throttle")
            throttled += [f"{label}: {reason}" for reason in HARD if reasons.get(reason) is True]
    return Reading(
        at=(at or datetime.now(UTC)).isoformat(timespec="seconds"),
        hottest_c=hottest[0] if hottest is not None else None,
        hottest=hottest[1] if hottest is not None else None,
        throttled=tuple(throttled),
        failures=tuple(
            (one.node, one.check, one.evidence) for one in health.results if one.status is Status.FAIL
        ),
        unread=tuple((node.node, node.why) for node in health.nodes if node.why is not None),
    )


def judge_readings(readings: tuple[Reading, ...]) -> list[Finding]:
    """Failures and throttling, each node and check once, with the time; the first reading is before the load."""
    findings: list[Finding] = []
    seen: set[tuple[str, str]] = set()
    for number, reading in enumerate(readings):
        when = f"since {reading.at}" if number else "before the load began"
        for node, check, evidence in reading.failures:
            if (node, check) not in seen:
                findings.append(Finding(Status.FAIL, f"{node}: {check}: {evidence} ({when})"))
            seen.add((node, check))
        for reason in reading.throttled:
            if (reason, "throttle") not in seen:
                findings.append(Finding(Status.FAIL, f"{reason} throttles the clocks ({when})"))
            seen.add((reason, "throttle"))
    unread = Counter(node for reading in readings for node, _ in reading.unread)
    reasons = {node: why for reading in readings for node, why in reading.unread}
    for node, times in unread.items():
        if 2 * times > len(readings):  # once may be a busy node
            why = f"{node}: {times} of {len(readings)} readings of the health probe failed: {reasons[node]}"
            findings.append(Finding(Status.UNKNOWN, why))
    return findings


def _gpus(document: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON data
    listed = _of(_of(_of(document, "sections"), "gpus"), "data").get("gpus")
    return [gpu for gpu in listed[:GPUS_MAX] if isinstance(gpu, dict)] if isinstance(listed, list) else []


def _of(data: Any, key: str) -> dict[str, Any]:  # noqa: ANN401 - JSON data
    found = data.get(key) if isinstance(data, dict) else None
    return found if isinstance(found, dict) else {}
