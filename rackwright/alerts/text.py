"""Rules as Prometheus reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from rackwright.alerts.overrides import Override
from rackwright.alerts.prose import prose
from rackwright.alerts.rule import Alert, Recording, RuleGroup

RUNBOOKS = "docs/alerts"
_RANGE = re.compile(r"\[([0-9]+[smhdw])(:(?:[0-9]+[smhdw])?)?\]")
_OFFSET = re.compile(r"\boffset ([0-9]+[smhdw])\b")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_NONE = Override()


def rule_file(
    groups: Iterable[RuleGroup],
    jobs: frozenset[str],
    overrides: Mapping[str, Override] | None = None,
    *,
    hold_factor: float = 1,
    least_range_seconds: int = 0,
) -> str:
    """A rule file with the rules for which the cluster has every scrape job.

    hold_factor: at most 1; shortens hold times and ranges, for drills.
    least_range_seconds: the shortest range, so that each has enough samples for a rate.
    """
    shown = []
    for group in groups:
        rules = list(_rules(group, jobs, overrides or {}, hold_factor, least_range_seconds))
        if rules:
            interval = {} if group.interval_seconds is None else {"interval": f"{group.interval_seconds}s"}
            shown.append({"name": group.name, **interval, "rules": rules})
    return yaml.safe_dump({"groups": shown}, sort_keys=False, width=1000, allow_unicode=True)


def _rules(
    group: RuleGroup, jobs: frozenset[str], overrides: Mapping[str, Override], factor: float, least: int
) -> Iterator[dict[str, Any]]:
    for rule in group.rules:
        if not rule.jobs <= jobs:
            continue
        if isinstance(rule, Recording):
            labels = {"labels": dict(rule.labels)} if rule.labels else {}
            yield {"record": rule.record, "expr": shortened(prose(rule.expr), factor, least), **labels}
            continue
        change = overrides.get(rule.name, _NONE)
        if change.enabled:
            yield _alert(rule, change, factor, least)


def _alert(rule: Alert, change: Override, factor: float, least: int) -> dict[str, Any]:
    hold = rule.hold_seconds if change.hold_seconds is None else change.hold_seconds
    found: dict[str, Any] = {
        "alert": rule.name,
        "expr": shortened(with_thresholds(prose(rule.expr), rule, change.thresholds), factor, least),
        "for": f"{round(hold * factor)}s",
    }
    if rule.keep_firing_seconds:
        found["keep_firing_for"] = f"{max(1, round(rule.keep_firing_seconds * factor))}s"
    found["labels"] = {"severity": (change.severity or rule.severity).value, **rule.labels}
    found["annotations"] = {
        "summary": with_thresholds(rule.summary, rule, change.thresholds),
        "description": with_thresholds(rule.description, rule, change.thresholds),
        "runbook": f"{RUNBOOKS}/{rule.name}.md",
    }
    return found


def with_thresholds(text: str, rule: Alert, changed: Mapping[str, float] | None = None) -> str:
    """A text of the rule with thresholds, including overrides, in place of `<name>`."""
    for name, threshold in rule.thresholds.items():
        text = text.replace(f"<{name}>", number((changed or {}).get(name, threshold.value)))
    return text


def number(value: float) -> str:
    """A readable number: no exponent, no needless digits."""
    return f"{value:.0f}" if value == int(value) else f"{value:.10f}".rstrip("0")


def shortened(text: str, factor: float, least: int) -> str:
    """The expression with shorter ranges, subqueries and offsets; none is shorter than `least` seconds."""

    def span(given: str, floor: int) -> str:
        whole = int(given[:-1]) * _SECONDS[given[-1]]
        found = max(floor, round(whole * factor))
        return given if found == whole else f"{found}s"

    def shorter(found: re.Match[str]) -> str:
        step = found[2] or ""
        return f"[{span(found[1], least)}{f':{span(step[1:], 1)}' if len(step) > 1 else step}]"

    return _OFFSET.sub(lambda found: f"offset {span(found[1], least)}", _RANGE.sub(shorter, text))
