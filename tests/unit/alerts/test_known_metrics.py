"""Every metric in a rule comes from an exporter that rackwright deploys, in a job that the rule names."""

from __future__ import annotations

import promql_parser
import pytest

from rackwright.alerts.catalogue import GROUPS, RECORDINGS
from rackwright.alerts.declared import declared_groups
from rackwright.alerts.rule import Alert, Recording
from rackwright.roles.dcgm_exporter import counters
from tests.unit.alerts.metrics import ANY_JOB, OURS, RECORDED, SIMULATED, names_in, of_job, read_by
from tests.unit.alerts.promtool import ALL_JOBS, name_of
from tests.unit.alerts.test_declared import EVERYTHING

_RULES = tuple(rule for group in GROUPS for rule in group.rules)
_DECLARED = {
    rule.record
    for group in declared_groups(EVERYTHING, carbon_grams_per_kwh=380)
    for rule in group.rules
    if isinstance(rule, Recording)
}


@pytest.mark.parametrize("rule", _RULES, ids=name_of)
def test_a_rule_reads_metrics_of_its_jobs(rule):
    jobs = rule.jobs | (rule.also_reads if isinstance(rule, Alert) else frozenset())
    known = ANY_JOB.union(*map(of_job, jobs))
    for name in read_by(rule):
        if OURS.fullmatch(name):
            assert name in RECORDINGS or name in _DECLARED, f"{name} is recorded by no rule"
        else:
            assert name in known, f"{name} is in no recorded file of {', '.join(sorted(jobs))}"


@pytest.mark.parametrize("rule", _RULES, ids=name_of)
def test_a_rule_that_reads_what_another_records_needs_the_same_jobs(rule):
    for name in read_by(rule):
        if name in RECORDINGS:
            assert RECORDINGS[name].jobs <= rule.jobs, f"{name} is not there without its jobs"
        if name in _DECLARED:
            assert "node" in rule.jobs, f"{name} is made of the job node"


def test_every_job_has_a_recording():
    for job in ALL_JOBS:
        assert of_job(job), job


def test_recorded_files_say_where_they_come_from():
    for path in RECORDED.iterdir():
        first = path.read_text().splitlines()[0]
        assert first.startswith("# "), path.name
        assert "2026" in first or path.name == "contract.txt", f"{path.name}: from when?"


def test_what_the_lab_simulates_is_no_evidence():
    assert not any(path.stem.partition("-")[0] in ALL_JOBS for path in RECORDED.glob(f"{SIMULATED}*"))


def test_dcgm_exporter_is_asked_for_every_field_that_rules_read():
    asked = set(counters.COUNTERS)
    read = {name for rule in _RULES for name in read_by(rule) if name.startswith("DCGM_")}
    assert read <= asked


def test_an_unknown_metric_is_noticed():
    wrong = Recording("a:b:c", "sum(rate(node_no_such_total[5m]))", "A mistake.", frozenset({"node"}))
    assert read_by(wrong) == {"node_no_such_total"}
    assert "node_no_such_total" not in of_job("node")


def test_names_are_those_of_samples_and_of_declared_families():
    text = '# HELP a_x About a_y.\n# TYPE a_x gauge\na_x{l="b_z 1"} 1\nc_x 2\n# TYPE d_x counter\n'
    assert names_in(text) == {"a_x", "c_x", "d_x"}


def test_every_selector_of_an_expression_is_seen():
    text = "a / on () max by (x) (b) unless c offset 15m and max_over_time(rate(d[1m])[1h:1m]) > bool e"
    rule = Recording("a:b:c", text, "Every kind.", frozenset())
    assert read_by(rule) == {"a", "b", "c", "d", "e"}
    assert promql_parser.parse(text)
