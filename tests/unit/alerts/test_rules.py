"""Every rule, with Debian's promtool: it fires, it keeps quiet just under the line, it resolves."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
import yaml

from rackwright.alerts.catalogue import ALERTS, GROUPS, RECORDINGS
from rackwright.alerts.overrides import Override
from rackwright.alerts.text import rule_file
from tests.unit.alerts import cases
from tests.unit.alerts.case import Case, Recorded
from tests.unit.alerts.promtool import ALL_JOBS, failing, promtool, subject_of
from tests.unit.alerts.series import GPU1, HEAD1

_MODULES = {one.name: import_module(f"{cases.__name__}.{one.name}") for one in iter_modules(cases.__path__)}
CASES: tuple[Case | Recorded, ...] = tuple(case for module in _MODULES.values() for case in module.CASES)
ALWAYS_FIRES = {"Watchdog"}
"""It has no line to stay under, and never resolves."""


def _of(alert: str) -> list[Case]:
    return [case for case in CASES if isinstance(case, Case) and case.alert == alert]


@pytest.mark.parametrize("factor", [1, 0.01])
def test_promtool_accepts_every_rule(tmp_path, factor):
    path = tmp_path / "rules.yml"
    path.write_text(rule_file(GROUPS, ALL_JOBS, hold_factor=factor, least_range_seconds=8))
    ran = promtool("check", "rules", str(path))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{len(ALERTS) + len(RECORDINGS)} rules found" in ran.stdout


def test_every_case_holds(tmp_path):
    found, said = failing(tmp_path, CASES)
    assert not found, said


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_has_a_case_that_fires_one_under_the_line_and_one_that_resolves(alert):
    assert _of(alert), f"{alert}: tests/unit/alerts/cases/{subject_of(alert).name}.py has no case"
    for case in _of(alert):
        assert alert in ALWAYS_FIRES or (case.under and case.heals is not None and case.heals > case.fires)


@pytest.mark.parametrize("record", RECORDINGS)
def test_every_recording_rule_has_a_case(record):
    assert any(isinstance(case, Recorded) and case.record == record for case in CASES)


def test_cases_are_beside_their_rules():
    for name, module in _MODULES.items():
        for case in module.CASES:
            assert (subject_of(case.alert).name if isinstance(case, Case) else "recording") == name


@pytest.mark.slow
def test_every_case_fails_without_its_rule(tmp_path):
    found, _ = failing(tmp_path, CASES, groups=())
    fire = {f"{alert}: fires, and resolves" for alert in ALERTS}
    assert found == fire | {f"{record}: records" for record in RECORDINGS}


@pytest.mark.slow
@pytest.mark.parametrize("extra", [-1, 1])
def test_cases_notice_another_hold(tmp_path, extra):
    """With a minute more no alert fires in time; with a minute less those that wait fire too early."""
    changed = {
        name: Override(hold_seconds=max(0, alert.hold_seconds + extra * 3600))
        for name, alert in ALERTS.items()
    }
    found, _ = failing(tmp_path, CASES, overrides=changed)
    held = {name for name, alert in ALERTS.items() if extra > 0 or alert.hold_seconds}
    assert {f"{name}: fires, and resolves" for name in held} <= found


@pytest.mark.slow
def test_cases_are_just_under_the_line(tmp_path):
    """A threshold that is off by an eighth, one way or the other, makes a case fail that is to keep quiet."""
    every = {(name, threshold) for name, alert in ALERTS.items() for threshold in alert.thresholds}
    noticed = set()
    for factor in (0.875, 1.125):
        for number in range(max(len(alert.thresholds) for alert in ALERTS.values())):
            changed = {}
            for name, alert in ALERTS.items():
                for threshold, one in list(alert.thresholds.items())[number : number + 1]:
                    changed[name] = Override(thresholds={threshold: one.value * factor})
            folder = Path(tmp_path / f"{factor}-{number}")
            folder.mkdir()
            some = [case for case in CASES if isinstance(case, Case) and case.alert in changed]
            found, _ = failing(folder, some, overrides=changed)
            noticed |= {
                (name, next(iter(change.thresholds)))
                for name, change in changed.items()
                if f"{name}: under the line" in found
            }
    assert every - noticed == set()


def test_alerts_about_a_node_have_its_place():
    """Alertmanager groups, silences and inhibits by node, rack and leaf."""
    for case in CASES:
        if isinstance(case, Case) and "node" in case.labels:
            place = GPU1 if case.labels["node"].startswith("gpu") else HEAD1
            assert {**case.labels, **place, "node": case.labels["node"]} == case.labels, case.alert


def test_a_missing_promtool_fails_the_test(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(pytest.fail.Exception, match="promtool is missing"):
        promtool("--version")


def test_what_is_tested_is_what_prometheus_reads():
    """The tests render each group alone; together they are the file that the role writes."""
    whole = yaml.safe_load(rule_file(GROUPS, ALL_JOBS))["groups"]
    assert whole == [yaml.safe_load(rule_file((group,), ALL_JOBS))["groups"][0] for group in GROUPS]
