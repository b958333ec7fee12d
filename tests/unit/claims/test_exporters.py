"""What every exporter claims: its unit, its command line, who may read it, and that it asks for the password."""

from __future__ import annotations

from typing import ClassVar

import pytest

from rackwright.claims.exporters import exporter_checks
from rackwright.exporters import ExporterOptions, drop_in, web_config
from rackwright.model.monitoring import Scrape
from rackwright.model.platforms import Capability
from rackwright.model.types import Platform
from rackwright.roles.site_ca.options import SiteCaOptions
from rackwright.secrets.secret import Secret
from tests.unit.roles.fake_facts import file, files, unit
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.sites import site, worker


class Probing(ExporterOptions):
    """A role of this test: an exporter that also asks others."""

    role: ClassVar[str] = "some_exporter"
    software: ClassVar[str] = "snmp_exporter"
    job: ClassVar[str] = "some"
    port: int = 9999

    def scrapes(self, cluster, node):
        return (Scrape("some", 9999), Scrape("some", 9999, "/snmp"))


def arguments(cluster, node, options):
    return (f"--name={node.name}",)


OPTIONS = Probing()
ROLES = {"some_exporter": OPTIONS, "site_ca": SiteCaOptions()}
CLUSTER = site(ROLES)
NODE = worker(CLUSTER)
CHECKS = exporter_checks("Some", arguments)
RUNS, STARTED, USERS, REFUSES = (check.name for check in CHECKS)
UNIT = "prometheus-snmp-exporter.service"
PASSWORD = "open sesame"
WEB = web_config(CLUSTER, NODE, OPTIONS, lambda name: PASSWORD)
METRICS, SNMP = "https://10.9.0.11:9999/metrics", "https://10.9.0.11:9999/snmp"


def curl(url):
    return f"curl --silent --show-error --noproxy '*' --output /dev/null --max-time 10 --write-out '%{{http_code}}' {url}"


class Store:
    def __init__(self, *names):
        self.names = names

    def missing(self, names):
        return tuple(name for name in names if name not in self.names)

    def get(self, name):
        return Secret(name, PASSWORD)


@pytest.fixture(autouse=True)
def _store(monkeypatch):
    monkeypatch.setattr("rackwright.claims.exporters.store_of", lambda cluster: Store("metrics_password"))


def found(name, answers, cluster=CLUSTER):
    result = judged("some_exporter", CHECKS, name, cluster, worker(cluster), FakeHost(answers))
    return result.status, result.evidence


def test_it_runs():
    assert found(RUNS, unit(UNIT)) == ("PASS", f"{UNIT} is active and enabled")
    assert found(RUNS, unit(UNIT, "failed")) == ("FAIL", f"{UNIT} is failed")
    assert found(RUNS, {})[0] == "UNKNOWN"


def test_its_command_line():
    path = OPTIONS.drop_in(NODE)
    text = drop_in(CLUSTER, NODE, OPTIONS, ("--name=gpu1",))
    assert found(STARTED, files({path: text})) == ("PASS", path)
    assert found(STARTED, files({path: text.replace("gpu1", "gpu2")})) == (
        "FAIL",
        f'{path} is not as declared: "--name=gpu2"',
    )
    assert found(STARTED, files({path: None})) == ("FAIL", f"{path} is missing")
    assert found(STARTED, {})[0] == "UNKNOWN"


def test_its_users():
    path = OPTIONS.web_config
    whole = {"mode": "640", "group": "prometheus", "digest_only": True}
    assert found(USERS, file(path, WEB, **whole)) == ("PASS", f"{path} is 640 root:prometheus")
    assert found(USERS, file(path, WEB.replace("$2b$08$", "$2b$09$"), **whole)) == (
        "FAIL",
        f"{path} is not as declared",
    )
    assert found(USERS, file(path, WEB, "644", digest_only=True)) == (
        "FAIL",
        f"{path} is 644 root:root, not 640 root:prometheus",
    )
    assert found(USERS, {})[0] == "UNKNOWN"


def test_without_the_password_its_users_are_not_known(monkeypatch):
    monkeypatch.setattr("rackwright.claims.exporters.store_of", lambda cluster: Store())
    assert found(USERS, file(OPTIONS.web_config, WEB, "640", group="prometheus", digest_only=True)) == (
        "UNKNOWN",
        "the secrets store has no metrics_password",
    )


def test_it_asks_for_the_password_wherever_prometheus_asks():
    both = {curl(METRICS): "401", curl(SNMP): "401"}
    assert found(REFUSES, both) == ("PASS", f"{METRICS}, {SNMP} require the password")
    for status in ("200", "400"):
        assert found(REFUSES, {**both, curl(SNMP): status}) == ("FAIL", f"{SNMP} answers without a password")


@pytest.mark.parametrize(
    ("answer", "status", "evidence"),
    [
        ((7, "000", "curl: (7) Failed to connect\n"), "FAIL", f"no answer at {METRICS}"),
        (
            (
                60,
                "000",
                "curl: (60) SSL certificate problem: self-signed certificate\nMore details here: ...\n",
            ),
            "FAIL",
            f"this node does not trust the TLS certificate of {METRICS}: curl: (60) SSL certificate problem: self-signed certificate",
        ),
        (
            (28, "000", "curl: (28) Operation timed out\n"),
            "UNKNOWN",
            f"curl of {METRICS} exited 28: curl: (28) Operation timed out",
        ),
        ((127, "", ""), "UNKNOWN", f"curl of {METRICS} exited 127: no message"),
        ("503", "UNKNOWN", f"{METRICS} answers '503', neither content nor a refusal"),
    ],
)
def test_what_else_it_may_answer(answer, status, evidence):
    assert found(REFUSES, {curl(METRICS): answer, curl(SNMP): "401"}) == (status, evidence)


def test_where_it_does_not_apply_or_cannot_be():
    checks = exporter_checks("Some", arguments, applies=lambda node, options: node.name == "gpu2")
    assert claimed("some_exporter", checks, NODE) == ()
    assert len(claimed("some_exporter", checks, CLUSTER.by_name["gpu2"])) == 4
    container = site(ROLES, platform=Platform.CONTAINER)
    for check in exporter_checks("Some", arguments, needs=frozenset({Capability.HARDWARE})):
        result = judged("some_exporter", (check,), check.name, container, worker(container), FakeHost({}))
        assert (result.status, result.evidence) == (
            "OUT OF SCOPE",
            "a container's slots, sensors and links belong to its host",
        )
