"""Runs Debian's promtool on rules and their cases: one call for all, with files for each rule."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.alerts.catalogue import GROUPS
from rackwright.alerts.overrides import Override
from rackwright.alerts.rule import Alert, Recording, RuleGroup
from rackwright.alerts.text import RUNBOOKS, rule_file
from tests.unit.alerts.case import Case, Recorded, steps, values

ALL_JOBS = frozenset().union(*(rule.jobs for group in GROUPS for rule in group.rules))
_FAILED = re.compile(r"^\s+name: (.+?),?$", re.MULTILINE)
_PASSED = re.compile(r"^Unit Testing:.*\n(?:\s*SUCCESS\n)?|^\s*\n", re.MULTILINE)
_NOT_RECORDED = re.compile(r'^\s+expr: "(.+?)", time:', re.MULTILINE)


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One call; the test fails, and does not skip, where the program is missing."""
    program = shutil.which("promtool")
    if program is None:
        pytest.fail(
            "promtool is missing, so that no rule was tested: apt-get install --no-install-recommends prometheus"
        )
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, check=False)


def subject_of(alert: str) -> RuleGroup:
    """The group that an alert is in."""
    return next(
        group
        for group in GROUPS
        if any(isinstance(rule, Alert) and rule.name == alert for rule in group.rules)
    )


def failing(
    folder: Path,
    cases: Iterable[Case | Recorded],
    groups: Iterable[RuleGroup] = GROUPS,
    overrides: Mapping[str, Override] | None = None,
) -> tuple[set[str], str]:
    """Names of cases that fail with these rules, and all that promtool printed.

    Each rule is tested with those alone that it reads, which takes a fraction of the time that all of them take.
    """
    rules = {name_of(rule): rule for group in groups for rule in group.rules}
    by_rule: dict[tuple[str, int], list[Case | Recorded]] = {}
    for case in cases:
        by_rule.setdefault((case.alert if isinstance(case, Case) else case.record, case.every), []).append(
            case
        )
    for (name, every), some in by_rule.items():
        file = f"{name.replace(':', '-')}-{every}"
        tested = RuleGroup("tested", tuple(_read_by(rules, name)))
        (folder / f"{file}.rules.yml").write_text(rule_file((tested,), ALL_JOBS, overrides))
        document = {
            "rule_files": [f"{file}.rules.yml"],
            "evaluation_interval": f"{every}s",
            "tests": [test for case in some for test in _tests(case)],
        }
        (folder / f"{file}.test.yml").write_text(
            yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
        )
    ran = promtool("test", "rules", *(str(path) for path in sorted(folder.glob("*.test.yml"))))
    said = ran.stdout + ran.stderr
    found = {*_FAILED.findall(said), *(f"{record}: records" for record in _NOT_RECORDED.findall(said))}
    assert (ran.returncode == 0) == (not found), said
    return found, _PASSED.sub("", said)


def name_of(rule: Alert | Recording) -> str:
    """Of either kind of rule."""
    return rule.name if isinstance(rule, Alert) else rule.record


def _read_by(rules: Mapping[str, Alert | Recording], name: str) -> list[Alert | Recording]:
    """The rule of this name, after the recording rules that it reads; none where there is no such rule."""
    if name not in rules:
        return []
    wanted = set(re.findall(r"[a-z]+:[a-z_]+:[a-z]+", rules[name].expr))
    read = [one for other in rules if other in wanted and other != name for one in _read_by(rules, other)]
    return [*{name_of(one): one for one in read}.values(), rules[name]]


def _tests(case: Case | Recorded) -> Iterable[dict[str, Any]]:
    if isinstance(case, Recorded):
        yield _recorded(case)
        return
    firing = {
        "exp_labels": {"severity": case.severity, **case.labels},
        "exp_annotations": {
            "summary": case.summary,
            "description": case.description,
            "runbook": f"{RUNBOOKS}/{case.alert}.md",
        },
    }
    checks = [{"eval_time": f"{case.fires}s", "alertname": case.alert, "exp_alerts": [firing]}]
    if case.fires >= case.every:
        checks.insert(
            0, {"eval_time": f"{case.fires - case.every}s", "alertname": case.alert, "exp_alerts": []}
        )
    if case.heals is not None:
        checks.append({"eval_time": f"{case.heals}s", "alertname": case.alert, "exp_alerts": []})
    yield _test(f"{case.alert}: fires, and resolves", case.every, case.series, checks)
    for changes in case.under:
        series = {**case.series, **changes}
        ends = range(0, max(map(steps, series.values())) * case.every, case.every)
        quiet = [{"eval_time": f"{at}s", "alertname": case.alert, "exp_alerts": []} for at in ends]
        yield _test(f"{case.alert}: under the line", case.every, series, quiet)


def _recorded(case: Recorded) -> dict[str, Any]:
    samples = [{"labels": series, "value": value} for series, value in case.gives.items()]
    check = {"expr": case.record, "eval_time": f"{case.at}s", "exp_samples": samples}
    series = [{"series": name, "values": values(text)} for name, text in case.series.items()]
    return {
        "name": f"{case.record}: records",
        "interval": f"{case.every}s",
        "input_series": series,
        "promql_expr_test": [check],
    }


def _test(name: str, every: int, series: Mapping[str, str], checks: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "interval": f"{every}s",
        "input_series": [{"series": one, "values": values(text)} for one, text in series.items()],
        "alert_rule_test": checks,
    }
