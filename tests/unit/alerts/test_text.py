"""Rules as text: what a cluster has, what a site changes, and what a drill shortens."""

from __future__ import annotations

import re

import promql_parser
import pytest
import yaml
from pydantic import ValidationError

from rackwright.alerts.catalogue import GROUPS
from rackwright.alerts.overrides import Override
from rackwright.alerts.rule import Alert, Recording, RuleGroup, Severity, Threshold
from rackwright.alerts.text import number, rule_file, shortened
from tests.unit.alerts.promtool import ALL_JOBS

FULL = Alert(
    name="Full",
    expr="""
        a{job="node"} < <percent>
        and b > <seconds>
    """,
    hold_seconds=600,
    severity=Severity.WARNING,
    summary="less than <percent> %",
    description="Less than <percent> % for <seconds> s: {{ $value }}.",
    steps=("Look.",),
    jobs=frozenset({"node"}),
    means="It is full.",
    keep_firing_seconds=300,
    thresholds={
        "percent": Threshold(10, "percent", "Space left.", "made up for tests"),
        "seconds": Threshold(0.05, "seconds", "Time.", "made up for tests"),
    },
    labels={"team": "storage"},
)
MADE = Recording("a:b:sum", "sum by (node) (rate(a[5m]))", "A sum.", frozenset({"dcgm", "node"}), {"of": "a"})
GROUP = RuleGroup("one", (MADE, FULL), interval_seconds=15)


def _rules(*groups, jobs=frozenset({"node"}), overrides=None, **given):
    found = yaml.safe_load(rule_file(groups or (GROUP,), jobs, overrides, **given))
    return {
        rule.get("alert", rule.get("record")): rule for group in found["groups"] for rule in group["rules"]
    }


def test_the_whole_text():
    assert (
        rule_file((GROUP,), frozenset({"dcgm", "node"}))
        == """\
groups:
- name: one
  interval: 15s
  rules:
  - record: a:b:sum
    expr: sum by (node) (rate(a[5m]))
    labels:
      of: a
  - alert: Full
    expr: a{job="node"} < 10 and b > 0.05
    for: 600s
    keep_firing_for: 300s
    labels:
      severity: warning
      team: storage
    annotations:
      summary: less than 10 %
      description: 'Less than 10 % for 0.05 s: {{ $value }}.'
      runbook: docs/alerts/Full.md
"""
    )


def test_the_text_is_the_same_each_time():
    assert rule_file(GROUPS, ALL_JOBS) == rule_file(GROUPS, ALL_JOBS)


def test_a_rule_is_there_where_the_cluster_has_all_its_jobs():
    assert list(_rules(jobs=frozenset({"node"}))) == ["Full"]
    assert list(_rules(jobs=frozenset({"dcgm"}))) == []
    assert rule_file((GROUP,), frozenset()) == "groups: []\n"


def test_what_a_site_changes():
    changed = Override(hold_seconds=30, severity=Severity.CRITICAL, thresholds={"percent": 12.5})
    rule = _rules(overrides={"Full": changed})["Full"]
    assert rule["expr"] == 'a{job="node"} < 12.5 and b > 0.05'
    assert (rule["for"], rule["labels"]["severity"]) == ("30s", "critical")
    assert rule["annotations"]["description"] == "Less than 12.5 % for 0.05 s: {{ $value }}."


def test_an_alert_that_is_switched_off_is_left_out():
    assert "Full" not in _rules(overrides={"Full": Override(enabled=False)})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"hold_seconds": -1}, "Input should be greater than or equal to 0"),
        ({"hold_seconds": 10**6}, "Input should be less than or equal to 604800"),
        ({"severity": "fatal"}, "Input should be 'critical', 'warning' or 'info'"),
        ({"treshold": {}}, "Extra inputs are not permitted"),
    ],
)
def test_changes_that_are_refused(given, sentence):
    with pytest.raises(ValidationError, match=re.escape(sentence)):
        Override.model_validate(given)


def test_a_drill_shortens_what_an_alert_waits_for():
    rule = _rules(hold_factor=0.01)["Full"]
    assert (rule["for"], rule["keep_firing_for"]) == ("6s", "3s")


@pytest.mark.parametrize(
    ("expression", "factor", "least", "found"),
    [
        ("rate(a[5m])", 1, 0, "rate(a[5m])"),
        ("rate(a[5m])", 1, 120, "rate(a[5m])"),
        ("rate(a[5m])", 1, 480, "rate(a[480s])"),
        ("rate(a[5m])", 0.1, 8, "rate(a[30s])"),
        ("rate(a[5m])", 0.01, 8, "rate(a[8s])"),
        ("max_over_time(a[1d])", 0.01, 8, "max_over_time(a[864s])"),
        ("max_over_time(rate(a[5m])[1h:1m])", 0.1, 8, "max_over_time(rate(a[30s])[360s:6s])"),
        ("max_over_time(a[1h:1s])", 0.1, 8, "max_over_time(a[360s:1s])"),
        ("max_over_time(a[1h:])", 0.1, 8, "max_over_time(a[360s:])"),
        ("a unless a offset 15m", 0.01, 8, "a unless a offset 9s"),
        ('a{b=~"[0-9]d"}', 0.01, 8, 'a{b=~"[0-9]d"}'),
        ('a{b=~"x[5m]"}', 1, 0, 'a{b=~"x[5m]"}'),
        ("time() - a > 86400", 0.01, 8, "time() - a > 86400"),
    ],
)
def test_ranges_shrink_to_what_a_rate_needs(expression, factor, least, found):
    assert shortened(expression, factor, least) == found


def test_every_rule_still_parses_when_shortened():
    for rule in _rules(*GROUPS, jobs=ALL_JOBS, hold_factor=0.003, least_range_seconds=4).values():
        assert promql_parser.parse(rule["expr"])


def test_no_label_of_a_rule_looks_like_a_range():
    """Ranges are found by their form; in a matcher's text that form would be changed as well."""
    for group in GROUPS:
        for rule in group.rules:
            for text in re.findall(r'"[^"]*"', rule.expr):
                assert shortened(text, 0.01, 1) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(10, "10"), (0.05, "0.05"), (1e6, "1000000"), (2.5e9, "2500000000"), (-3, "-3"), (1e-9, "0.000000001")],
)
def test_numbers_have_no_exponent(value, text):
    assert number(value) == text
