"""Rules of Prometheus as typed data, and their text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """How urgent an alert is."""

    CRITICAL = "critical"
    """Jobs fail or data is at risk: pages the operator on call."""
    WARNING = "warning"
    """Needs work in the next days."""
    INFO = "info"
    """Worth knowing; sent nowhere by default."""


@dataclass(frozen=True)
class Threshold:
    """A number in an expression that a site may change; `<name>` stands for it in the alert's `expr`."""

    value: float
    unit: str
    """Of the value, e.g. `seconds`, `percent`, `nodes`."""
    about: str
    """What it limits, as in the options' documentation."""
    source: str
    """Where the value comes from, with the day it was read, or `rackwright: ` and why."""


@dataclass(frozen=True)
class Alert:
    """One alert rule."""

    name: str
    """CamelCase, e.g. `NodeDown`; also the name of its runbook page, docs/alerts/NodeDown.md."""
    expr: str
    """PromQL; fires for each series that it returns. Ranges in brackets shrink with a drill's timings. `<name>` stands for
    the threshold of that name."""
    hold_seconds: int
    """Prometheus' `for`: how long the expression is true before the alert fires."""
    severity: Severity
    summary: str
    """One line, e.g. `{{ $labels.node }} is down`."""
    description: str
    """What is wrong, with node and value, and the next step."""
    steps: tuple[str, ...]
    """The runbook: what to do, in order. Markdown, one paragraph each."""
    jobs: frozenset[str]
    """Scrape jobs whose metrics it reads: the rule is there where the cluster has all of them."""
    means: str
    """The runbook's first paragraph: what the alert means, and what it means for jobs."""
    also_reads: frozenset[str] = frozenset()
    """Scrape jobs that it reads where the cluster has them, and does without elsewhere."""
    keep_firing_seconds: int = 0
    """Prometheus' `keep_firing_for`."""
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)
    """Numbers that a site may change, by the name that stands for them in `expr` as `<name>`."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Further labels besides `severity`."""
    source: str | None = None
    """Where anything but the thresholds comes from, with the day it was read; None: it follows from the declaration or from
    the metric's definition."""


@dataclass(frozen=True)
class Recording:
    """One recording rule."""

    record: str
    """Name of the series, `level:metric:operation`, e.g. `job:gpu_power_watts:sum`."""
    expr: str
    about: str
    """What it is for, one line, with its unit."""
    jobs: frozenset[str]
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RuleGroup:
    """Rules that are evaluated together, in order."""

    name: str
    rules: tuple[Alert | Recording, ...]
    interval_seconds: int | None = None
    """None: Prometheus' own."""
