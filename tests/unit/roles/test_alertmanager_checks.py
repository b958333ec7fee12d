"""What the alertmanager role claims of a head: each claim holds, is false, cannot be known."""

from __future__ import annotations

import json
import shlex

import pytest

from rackwright.claims import web
from rackwright.roles.alertmanager import texts
from rackwright.roles.alertmanager.settings import alertmanager_yml
from rackwright.roles.alertmanager.verify import CHECKS, by_integration
from tests.unit.roles.alertmanager_site import HEAD, OPTIONS, SITE, pair
from tests.unit.roles.fake_facts import file, files
from tests.unit.roles.fake_host import FakeHost, Reply, claimed, judged

SETTINGS = "Alertmanager has its declared settings"
SECRETS = "only Alertmanager can read its receivers' secrets"
LOADED = "Alertmanager has loaded its settings"
SENT = "notifications reach their receivers"
PAIR = "both Alertmanagers see each other"
SILENCES = "rackwright can silence alerts"


class Api(FakeHost):
    """Answers of Alertmanager, by the end of the URL; other commands as scripted."""

    def run(self, command, *args):
        if args and args[0] == web.ASK:
            text = self.replies.get(args[-1].partition("9093")[2])
            return Reply(22, "", "curl: (22) 404") if text is None else Reply(0, text, "")
        return super().run(command, *args)


def result(name, replies, site=SITE, node="head1"):
    return judged("alertmanager", CHECKS, name, site, site.by_name[node], Api(replies))


class Store:
    absent: tuple[str, ...] = ()

    def missing(self, names):
        return [name for name in names if name in self.absent]

    def get(self, name):
        return type("Secret", (), {"reveal": lambda self: f"{name} of the store"})()


@pytest.fixture(autouse=True)
def store(monkeypatch):
    found = Store()
    for module in ("rackwright.roles.alertmanager.verify", "rackwright.claims.exporters"):
        monkeypatch.setattr(f"{module}.store_of", lambda cluster: found)
    return found


def test_no_check_passes_without_knowing():
    for check in CHECKS:
        for always in (None, "", "rubbish"):
            for site, node in ((SITE, HEAD), (pair(), pair().by_name["head1"])):
                if check.applies is None or check.applies(node, node.options["alertmanager"]):
                    found = judged("alertmanager", CHECKS, check.name, site, node, FakeHost({}, always))
                    assert found.status != "PASS", (check.name, always)


def test_a_single_one_sees_no_other():
    assert PAIR not in claimed("alertmanager", CHECKS, HEAD)
    assert PAIR in claimed("alertmanager", CHECKS, pair().by_name["head2"])


SETTINGS_FILES = {
    "/etc/prometheus/alertmanager.yml": alertmanager_yml(SITE, HEAD, OPTIONS),
    **texts.readable_files(SITE, HEAD, OPTIONS),
    texts.gossip_file(OPTIONS): None,
}


def test_settings():
    found = result(SETTINGS, files(SETTINGS_FILES))
    assert (found.status, found.evidence) == ("PASS", "4 files; receivers: dead-man, oncall, ops")
    found = result(SETTINGS, files({**SETTINGS_FILES, "/etc/prometheus/alertmanager.yml": "route: {}\n"}))
    assert found.status == "FAIL"
    assert found.evidence.startswith("/etc/prometheus/alertmanager.yml is not as declared: route: {}")
    found = result(SETTINGS, files({**SETTINGS_FILES, texts.gossip_file(OPTIONS): "old"}))
    assert (found.status, found.evidence) == (
        "FAIL",
        f"{texts.gossip_file(OPTIONS)} exists but is not declared",
    )


def secret_files(mode="640", strange="", **contents):
    answers = file(texts.password_file(OPTIONS), "monitoring_password of the store", "600", digest_only=True)
    for name in OPTIONS.supplied_secrets:
        text = contents.get(name, f"{name} of the store")
        answers |= file(texts.secret_file(OPTIONS, name), text, mode, group="prometheus", digest_only=True)
    return answers | {f"sh -c {shlex.quote(texts.strange_secrets(OPTIONS))}": strange}


def test_secrets(store):
    found = result(SECRETS, secret_files())
    assert (found.status, found.evidence) == ("PASS", "7 files")
    found = result(SECRETS, secret_files(slack_url="another"))
    folder = texts.secrets_folder(OPTIONS)
    assert (found.status, found.evidence) == ("FAIL", f"{folder}/slack_url is not as declared")
    found = result(SECRETS, secret_files(mode="644"))
    assert found.evidence == f"{folder}/smtp_password is 644 root:prometheus, not 640 root:prometheus"
    found = result(SECRETS, secret_files(strange="old_token\n"))
    assert (found.status, found.evidence) == ("FAIL", f"{folder} has old_token, which nothing declares")
    store.absent = ("slack_url",)
    found = result(SECRETS, secret_files())
    assert (found.status, found.evidence) == ("UNKNOWN", "the secrets store lacks slack_url")


@pytest.mark.parametrize(
    ("metrics", "status", "evidence"),
    [
        ("alertmanager_config_last_reload_successful 1\n", "PASS", "its last reload succeeded"),
        (
            "alertmanager_config_last_reload_successful 0\n",
            "FAIL",
            "Alertmanager rejected its settings at the last reload and still runs with the previous ones",
        ),
        ("other 1\n", "UNKNOWN", "Alertmanager does not report whether it has loaded its settings"),
        (
            "alertmanager_config_last_reload_successful 1e\n",
            "UNKNOWN",
            "alertmanager_config_last_reload_successful of Alertmanager is 1e",
        ),
    ],
)
def test_settings_that_were_refused_fail(metrics, status, evidence):
    found = result(LOADED, {"/metrics": metrics})
    assert (found.status, found.evidence) == (status, evidence)


def counters(tried, failed):
    """As Alertmanager 0.28.1 prints them: failures by reason as well."""
    lines = []
    for kind in ("email", "webhook"):
        lines.append(f'alertmanager_notifications_total{{integration="{kind}"}} {tried.get(kind, 0)}')
        lines += [
            f'alertmanager_notifications_failed_total{{integration="{kind}",reason="clientError"}} 0',
            f'alertmanager_notifications_failed_total{{integration="{kind}",reason="other"}} {failed.get(kind, 0)}',
        ]
    return {"/metrics": "\n".join(lines) + "\n"}


@pytest.mark.parametrize(
    ("answers", "status", "evidence"),
    [
        (counters({}, {}), "PASS", "sent since it started: none"),
        (
            counters({"email": 3, "webhook": 12}, {}),
            "PASS",
            "sent since it started: 3 by email, 12 by webhook",
        ),
        (
            counters({"email": 3, "webhook": 12}, {"webhook": 2}),
            "WARN",
            "notifications failed since Alertmanager started: 2 of 12 by webhook",
        ),
        (
            counters({"email": 3, "webhook": 12}, {"email": 3, "webhook": 2}),
            "FAIL",
            "all notifications failed since Alertmanager started: 3 by email",
        ),
        ({"/metrics": "up 1\n"}, "UNKNOWN", "Alertmanager does not report its notifications"),
        (
            {"/metrics": 'alertmanager_notifications_total{integration="email"} 4\n'},
            "UNKNOWN",
            "Alertmanager does not report its notifications",
        ),
    ],
)
def test_notifications(answers, status, evidence):
    found = result(SENT, answers)
    assert (found.status, found.evidence) == (status, evidence)


def test_counters_of_an_older_release_have_no_reason():
    text = 'x{integration="email"} 1\nx{integration="webhook"} 2.0e+01\n'
    assert by_integration(text, "x") == {"email": 1, "webhook": 20}


def status(*addresses, state="ready"):
    peers = [{"address": address, "name": "01X"} for address in addresses]
    return {"/api/v2/status": json.dumps({"cluster": {"status": state, "peers": peers}})}


BOTH = ("10.9.0.10:9094", "10.9.0.20:9094")


@pytest.mark.parametrize(
    ("answers", "verdict", "evidence"),
    [
        (status(*BOTH), "PASS", "head1 and head2 see each other"),
        (status(BOTH[0]), "FAIL", "head1 does not see head2"),
        (status(*BOTH, "10.9.0.66:9094"), "FAIL", "head1 sees 10.9.0.66:9094, which is not declared"),
        (status(*BOTH, state="settling"), "UNKNOWN", "gossip status is settling"),
        ({"/api/v2/status": "{}"}, "UNKNOWN", "Alertmanager's answer does not describe its cluster"),
        (
            {"/api/v2/status": '{"cluster": {"status": "disabled"}}'},
            "UNKNOWN",
            "Alertmanager does not report its peers",
        ),
    ],
)
def test_a_pair(answers, verdict, evidence):
    found = result(PAIR, answers, site=pair())
    assert (found.status, found.evidence) == (verdict, evidence)


QUERY = "HOME=/nonexistent amtool --no-version-check --timeout=10s --output=json silence query"


@pytest.mark.parametrize(
    ("answer", "verdict", "evidence"),
    [
        ("[]\n", "PASS", "amtool reaches it; active silences: 0"),
        ('[{"id": "x"}]\n', "PASS", "amtool reaches it; active silences: 1"),
        ("{}\n", "UNKNOWN", "amtool prints no list of silences"),
    ],
)
def test_silences(answer, verdict, evidence):
    found = result(SILENCES, {QUERY: answer})
    assert (found.status, found.evidence) == (verdict, evidence)
    assert result(SILENCES, {QUERY: (1, "", "amtool: error: 401")}).status == "UNKNOWN"
