"""The grafana role's checks, each in a case in which it passes, fails, and cannot know. Answers are as Grafana's HTTP API
documents them (read 2026-11-27): no Grafana was to be had.
"""

from __future__ import annotations

import json
import shlex

import pytest

from rackwright.claims import web
from rackwright.facts.files import declared_tree
from rackwright.roles.grafana import texts, verify
from rackwright.roles.grafana.options import FOLDER
from rackwright.roles.grafana.verify import CHECKS
from rackwright.secrets.store import Secret
from tests.unit.roles.container_site import never_passes
from tests.unit.roles.fake_facts import file, tree, unit
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.sites import head, worker
from tests.unit.roles.test_grafana import LDAP, cluster, options

SITE = cluster(ldap=LDAP)
HEAD = head(SITE)
OPTIONS = options(SITE)
BASE = "https://10.9.0.10:3000"
RUNS, FILES, SECRETS, DASHBOARDS, CLOSED, ADMIN, HEALTHY, SHOWN = (check.name for check in CHECKS[1:])
UNIT = "grafana-server.service"


class Store:
    """Every secret is there, but those that are `gone`."""

    gone: tuple[str, ...] = ()

    def get(self, name):
        return Secret(name, f"{name} of the store")

    def missing(self, names):
        return tuple(name for name in names if name in self.gone)


@pytest.fixture(autouse=True)
def store(monkeypatch):
    made = Store()
    monkeypatch.setattr(verify, "store_of", lambda cluster: made)
    return made


def check(name, answers, of=SITE):
    found = judged("grafana", CHECKS, name, of, head(of), FakeHost(answers))
    return found.status, found.evidence


def test_no_check_passes_without_knowing():
    never_passes("grafana", CHECKS, SITE, HEAD)


def test_where_it_is_checked():
    assert set(claimed("grafana", CHECKS, HEAD)) == {one.name for one in CHECKS[1:]}, "no version is declared"
    assert CHECKS[0].name in claimed("grafana", CHECKS, head(cluster(version="12.3.2")))
    assert claimed("grafana", CHECKS, worker(SITE)) == ()


def test_it_runs():
    assert check(RUNS, unit(UNIT)) == ("PASS", f"{UNIT} is active and enabled")
    assert check(RUNS, unit(UNIT, active="failed")) == ("FAIL", f"{UNIT} is failed")


def settings(**changed):
    answers = {}
    for path, text in texts.plain_files(SITE, HEAD, OPTIONS).items():
        answers |= file(path, changed.get("text", text), changed.get("mode", "640"), group="grafana")
    return answers | file(OPTIONS.drop_in(HEAD), changed.get("drop_in", texts.drop_in(HEAD, OPTIONS)))


def test_settings():
    assert check(FILES, settings()) == ("PASS", "5 files")
    assert check(FILES, settings(text="x")) == ("FAIL", "/etc/grafana/grafana.ini is not as declared")
    assert check(FILES, settings(mode="644"))[1] == (
        "/etc/grafana/grafana.ini is 644 root:grafana, not 640 root:grafana"
    )
    assert check(FILES, settings(drop_in=None)) == ("FAIL", f"{OPTIONS.drop_in(HEAD)} is missing")


def test_undeclared_ldap_settings():
    of = cluster()
    answers = {}
    for path, text in texts.plain_files(of, head(of), options(of)).items():
        answers |= file(path, text, "640", group="grafana")
    answers |= file(OPTIONS.drop_in(HEAD), texts.drop_in(head(of), options(of)))
    assert check(FILES, answers | file("/etc/grafana/ldap.toml", None), of) == ("PASS", "4 files")
    status, evidence = check(FILES, answers | file("/etc/grafana/ldap.toml", "x"), of)
    assert (status, "/etc/grafana/ldap.toml" in evidence) == ("FAIL", True)


def secrets(mode="640", text=None):
    answers = {}
    for path, name in texts.secret_files(OPTIONS).items():
        answers |= file(path, text or f"{name} of the store", mode, group="grafana", digest_only=True)
    return answers


def test_secrets(store):
    assert check(SECRETS, secrets()) == ("PASS", f"5 files in {FOLDER}")
    assert check(SECRETS, secrets(mode="644"))[0] == "FAIL"
    assert check(SECRETS, secrets(text="another")) == (
        "FAIL",
        f"{FOLDER}/grafana_admin_password is not as declared",
    )
    store.gone = ("grafana_ldap_password",)
    assert check(SECRETS, secrets()) == ("UNKNOWN", "the secrets store lacks grafana_ldap_password")


def test_dashboards():
    wanted = texts.dashboards(SITE)
    assert check(DASHBOARDS, tree(texts.DASHBOARDS_FOLDER, declared_tree(wanted)))[0] == "PASS"
    changed = {**wanted, "Cluster/overview.json": "{}", "Cluster/mine.json": "{}"}
    assert check(DASHBOARDS, tree(texts.DASHBOARDS_FOLDER, declared_tree(changed))) == (
        "FAIL",
        f"in {texts.DASHBOARDS_FOLDER}: Cluster/mine.json is not declared; Cluster/overview.json differs",
    )


def status_of(path, *answer):
    command = f"curl --silent --show-error --noproxy '*' --output /dev/null --max-time 10 --write-out '%{{http_code}}' {BASE}{path}"
    return {command: answer[0] if len(answer) == 1 else answer}


LOCKED = {line: "401" for path in verify._CLOSED for line in status_of(path, "401")}


@pytest.mark.parametrize(
    ("answers", "status", "evidence"),
    [
        (LOCKED, "PASS", f"{BASE} requires a login"),
        (LOCKED | status_of("/api/search", "200"), "FAIL", f"{BASE}/api/search answers without a password"),
        (LOCKED | status_of("/metrics", "200"), "FAIL", f"{BASE}/metrics answers without a password"),
        (LOCKED | status_of("/api/org", 7, "", ""), "FAIL", f"no answer at {BASE}/api/org"),
        (
            LOCKED | status_of("/api/org", 60, "", "self-signed certificate"),
            "FAIL",
            f"this node does not trust the TLS certificate of {BASE}/api/org: self-signed certificate",
        ),
        (
            LOCKED | status_of("/api/org", 28, "", "timed out"),
            "UNKNOWN",
            f"curl of {BASE}/api/org exited 28: timed out",
        ),
        (
            LOCKED | status_of("/api/org", "503"),
            "UNKNOWN",
            f"{BASE}/api/org answers '503', neither content nor a refusal",
        ),
    ],
)
def test_requests_without_a_login_get_no_answer(answers, status, evidence):
    assert check(CLOSED, answers) == (status, evidence)


def api(path, printed):
    words = ("sh", "-c", web.ASK, "sh", "admin", f"{FOLDER}/grafana_admin_password", f"{BASE}/api/{path}")
    return {shlex.join(words): printed if isinstance(printed, str) else json.dumps(printed)}


@pytest.mark.parametrize(
    ("printed", "status", "evidence"),
    [
        ({"login": "admin", "isGrafanaAdmin": True}, "PASS", "admin logs in"),
        (
            {"message": "Invalid username or password"},
            "FAIL",
            'Grafana refuses the administrator\'s password: {"message": "Invalid username or password"}',
        ),
        ({"login": "admin", "isGrafanaAdmin": False}, "FAIL", "admin is not an administrator of Grafana"),
        ([1], "UNKNOWN", "Grafana's response is not in the documented format"),
        (
            "<html>",
            "UNKNOWN",
            "the answer of Grafana cannot be read: it is not valid JSON: Expecting value: line 1 column 1 (char 0)",
        ),
    ],
)
def test_the_administrator(printed, status, evidence):
    assert check(ADMIN, api("user", printed)) == (status, evidence)


UIDS = [texts.PROMETHEUS, texts.ALERTMANAGER, texts.LOKI]
HEALTH = {
    **api(f"datasources/uid/{texts.PROMETHEUS}/health", {"status": "OK", "message": "fine"}),
    **api(f"datasources/uid/{texts.LOKI}/health", {"status": "OK"}),
    **api("datasources", [{"uid": uid} for uid in UIDS]),
}


@pytest.mark.parametrize(
    ("more", "status", "evidence"),
    [
        ({}, "PASS", ", ".join(UIDS)),
        (
            api(
                f"datasources/uid/{texts.PROMETHEUS}/health",
                {"status": "ERROR", "message": "401 Unauthorized"},
            ),
            "FAIL",
            "rackwright-prometheus: 401 Unauthorized",
        ),
        (
            api(f"datasources/uid/{texts.LOKI}/health", {"message": "Data source not found"}),
            "UNKNOWN",
            'Grafana does not report the health of rackwright-loki: {"message": "Data source not found"}',
        ),
        (
            api("datasources", [{"uid": "mine"}, {"uid": texts.PROMETHEUS}]),
            "FAIL",
            (
                "Grafana has the data sources mine, rackwright-prometheus, not rackwright-prometheus, "
                "rackwright-alertmanager, rackwright-loki"
            ),
        ),
        (api("datasources", {"message": "x"}), "UNKNOWN", "Grafana does not list its data sources"),
    ],
)
def test_data_sources(more, status, evidence):
    assert check(HEALTHY, {**HEALTH, **more}) == (status, evidence)


def found_dashboards(**changed):
    listed = {**texts.dashboard_uids(SITE), **changed}
    printed = [{"uid": uid, "folderTitle": folder} for uid, folder in listed.items() if folder is not None]
    return api("search?type=dash-db&limit=5000", printed)


def test_dashboards_that_are_shown():
    count = len(texts.dashboard_uids(SITE))
    assert check(SHOWN, found_dashboards()) == ("PASS", f"{count} dashboards")
    assert check(SHOWN, found_dashboards(mine="General")) == ("PASS", f"{count} dashboards")
    assert check(SHOWN, found_dashboards(**{"rackwright-node": None})) == (
        "FAIL",
        "Grafana does not have rackwright-node",
    )
    assert check(SHOWN, found_dashboards(**{"rackwright-node": "General"})) == (
        "FAIL",
        "rackwright-node is not in the folder Cluster",
    )
    assert check(SHOWN, api("search?type=dash-db&limit=5000", {"message": "x"})) == (
        "UNKNOWN",
        "Grafana does not list its dashboards",
    )
