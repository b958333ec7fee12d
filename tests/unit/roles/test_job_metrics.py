"""The job_metrics role: where it runs, its files, and its checks."""

from __future__ import annotations

import ast
import json

import pytest

from rackwright.model.types import NodeRole
from rackwright.roles.job_metrics import texts
from rackwright.roles.job_metrics.options import CLIENT, SERVER, UNIT, UNIT_FILE, JobMetricsOptions
from rackwright.roles.job_metrics.verify import CHECKS
from rackwright.roles.munge.options import MungeOptions
from rackwright.roles.node_exporter.options import NodeExporterOptions
from rackwright.roles.prometheus.options import PrometheusOptions
from rackwright.roles.site_ca.options import SiteCaOptions
from tests.unit.roles.container_site import never_passes, sentences
from tests.unit.roles.fake_facts import file, unit
from tests.unit.roles.fake_host import FakeHost, claimed, content, errors_in, judged, planned
from tests.unit.roles.sites import head, site, worker

OPTIONS = JobMetricsOptions(operators=("root", "ada"))
ROLES = {
    "munge": MungeOptions(),
    "node_exporter": NodeExporterOptions(),
    "prometheus": PrometheusOptions(),
    "site_ca": SiteCaOptions(),
}
SITE = site({**ROLES, "job_metrics": OPTIONS})
FILES = "the job metrics programs are as declared"
REFUSES = "job metrics are refused without a credential"
ANSWERS = "users of this node can query job metrics"
CURL = (
    "curl --silent --show-error --noproxy '*' --output /dev/null --max-time 10 --write-out '%{http_code}' "
    "https://10.9.0.10:9911/v1/jobs/1"
)
ASK = f"timeout 60 {CLIENT} 1"


@pytest.mark.parametrize("given", [{"port": 0}, {"days": 0}, {"operators": ["a b"]}, {"since": 1}])
def test_options_that_are_refused(given):
    assert len(errors_in(JobMetricsOptions, given)) == 1


def test_it_needs_prometheus_and_munge():
    assert sentences(SITE, "job_metrics") == []
    without = site({"job_metrics": OPTIONS})
    assert [sentence for _, sentence, _ in sentences(without, "job_metrics")] == [
        "No Prometheus is declared to hold job metrics.",
        "head1 has no MUNGE, which authenticates users.",
    ]


def test_it_is_where_users_are():
    assert JobMetricsOptions.applies_to == {NodeRole.HEAD, NodeRole.LOGIN, NodeRole.WORKER}


def test_the_server_is_beside_prometheus_alone():
    assert OPTIONS.serves_on(head(SITE))
    assert not OPTIONS.serves_on(worker(SITE))
    assert OPTIONS.listeners(worker(SITE)) == ()
    assert content(planned(SITE, worker(SITE)), SERVER) is None
    assert content(planned(SITE, worker(SITE)), UNIT_FILE) is None


def test_the_settings_of_the_server():
    files = texts.server_files(SITE, head(SITE), OPTIONS)
    assert json.loads(files[texts.SERVER_SETTINGS]) == {
        "address": "10.9.0.10",
        "port": 9911,
        "certificate": "/etc/rackwright-job-metrics/tls.crt",
        "key": "/etc/rackwright-job-metrics/tls.key",
        "prometheus": "https://10.9.0.10:9090",
        "user": "prometheus",
        "password_file": "/etc/rackwright-exporters/prometheus/password",
        "ca_file": "/etc/rackwright-ca.crt",
        "operators": ["root", "ada"],
        "days": 31,
    }
    assert "User=prometheus\n" in files[UNIT_FILE]
    assert f"ExecStart=/usr/bin/python3 -IS {SERVER} {texts.SERVER_SETTINGS}\n" in files[UNIT_FILE]
    assert "TasksMax=256\n" in files[UNIT_FILE]


def test_the_client_knows_the_server_and_no_secret():
    plan = planned(SITE, worker(SITE))
    assert json.loads(content(plan, texts.CLIENT_SETTINGS)) == {
        "url": "https://10.9.0.10:9911",
        "ca_file": "/etc/rackwright-ca.crt",
    }
    program = content(plan, CLIENT)
    assert program.startswith("#!/usr/bin/python3 -IS\n")
    ast.parse(program)


def answers(node, **changed):
    found = unit(UNIT) | {CURL: "401", ASK: (1, "", "job-metrics: no job 1 of root in the last 31 days\n")}
    for path, text in {
        **texts.client_files(SITE, node, OPTIONS),
        **texts.server_files(SITE, node, OPTIONS),
    }.items():
        found |= file(path, text, mode="755" if path == CLIENT else "644")
    return found | changed


@pytest.mark.parametrize("node", [head(SITE), worker(SITE)], ids=lambda node: node.name)
def test_a_node_as_declared_passes(node):
    for name in claimed("job_metrics", CHECKS, node):
        found = judged("job_metrics", CHECKS, name, SITE, node, FakeHost(answers(node)))
        assert found.status == "PASS", found


def result(name, **changed):
    return judged("job_metrics", CHECKS, name, SITE, head(SITE), FakeHost(answers(head(SITE)) | changed))


def test_who_does_not_say_who_asks_has_to_be_refused():
    assert result(REFUSES, **{CURL: "200"}).status == "FAIL"
    assert result(REFUSES, **{CURL: (7, "000", "could not connect")}).status == "FAIL"
    assert result(REFUSES, **{CURL: (28, "000", "timed out")}).status == "UNKNOWN"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("head gpu 0 ...", "PASS"),
        ((1, "", "job-metrics: MUNGE refuses the credential\n"), "FAIL"),
        ((1, "", "job-metrics: https://10.9.0.10:9911 does not answer\n"), "FAIL"),
        ((1, "", ""), "FAIL"),
        ((124, "", ""), "UNKNOWN"),
    ],
)
def test_the_whole_way_is_tried(answer, status):
    assert result(ANSWERS, **{ASK: answer}).status == status


def test_a_changed_program_fails():
    assert result(FILES, **file(CLIENT, "#!/bin/sh\n", mode="755")).status == "FAIL"


def test_nothing_passes_without_tools():
    never_passes("job_metrics", CHECKS, SITE, head(SITE))
