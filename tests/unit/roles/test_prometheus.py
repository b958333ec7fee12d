"""The prometheus role: options, targets with their labels, settings, and its checks."""

from __future__ import annotations

import json

import pytest
import yaml

from rackwright.model.monitoring import ExposesMetrics, Probe, RoutesAlerts, Scrape
from rackwright.model.options import RoleOptions
from rackwright.roles.node_exporter.options import NodeExporterOptions
from rackwright.roles.prometheus import texts
from rackwright.roles.prometheus.options import PrometheusOptions
from rackwright.roles.prometheus.targets import jobs_of, targets_json
from rackwright.roles.prometheus.verify import CHECKS
from rackwright.roles.site_ca.options import SiteCaOptions
from tests.unit.roles.container_site import sentences
from tests.unit.roles.fake_host import FakeHost, Reply, content, errors_in, judged, planned
from tests.unit.roles.sites import expected, head, site


class Others(RoleOptions, ExposesMetrics, RoutesAlerts):
    """A role that probes, one whose series name their nodes, and an Alertmanager."""

    drill_port: int | None = None

    def runs_on(self, node):
        return node.primary

    def scrapes(self, cluster, node):
        probes = (Probe("10.9.0.11", {"node": "gpu1", "probe": "icmp"}), Probe("switch1:161"))
        return (
            Scrape("blackbox", 9115, "/probe", 300, 20, {"module": ("icmp",)}, probes),
            Scrape("slurm", 9341, names_nodes=True),
            Scrape("bare", 9400, certified=False),
        )

    def alerts_address(self, cluster, node):
        return "10.9.0.10:9093"


def cluster(*, ca=True, others=True, **changes):
    roles = {"node_exporter": NodeExporterOptions(), "prometheus": PrometheusOptions(**changes)}
    roles |= {"site_ca": SiteCaOptions()} if ca else {}
    return site(roles | ({"others": Others()} if others else {}))


SITE = cluster(
    retention_days=7,
    labels={"site": "north"},
    carbon_grams_per_kwh=380,
    federate=({"target": "prom.south.example.com:9090", "site": "south"},),
    remote_write=(
        {"url": "https://mimir.example.com/push", "login": {"user": "r", "stored_as": "mimir"}, "keep": "up"},
    ),
    extra_jobs={"chiller": {"targets": ("10.9.0.200:80",), "scheme": "http", "labels": {"room": "b"}}},
)
HEAD = head(SITE)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"nodes": ["head1", "head1"]}, "Both nodes of the pair are the same."),
        ({"labels": {"node": "x"}}, "rackwright sets the label node itself."),
        ({"labels": {"cluster": "x"}}, "rackwright sets the label cluster itself."),
        ({"alerts": {"Watchdgo": {}}}, "There is no alert Watchdgo."),
        (
            {"alerts": {"GpuHot": {"thresholds": {"celsius": 90}}}},
            "The alert GpuHot has no threshold celsius.",
        ),
        (
            {"federate": [{"target": "a:1", "site": "s"}, {"target": "b:1", "site": "s"}]},
            "Two federated servers have the same `site`.",
        ),
        ({"hold_factor": 0}, "Input should be greater than 0"),
        ({"remote_write": [{"url": "https://u:p@h/push"}]}, "The URL contains credentials."),
        (
            {"federate": [{"target": "a b:1", "site": "s"}]},
            "String should match pattern '^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:[0-9]{1,5}$'",
        ),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(PrometheusOptions, given) == [sentence]


def test_without_a_ca_the_clear_has_to_be_declared():
    assert sentences(cluster(ca=False), "node_exporter", "gpu1") == [
        (
            "",
            "head1 has no certificate for node_exporter: metrics and their password would cross the network unencrypted.",
            "add the role `site_ca: {}`, or declare it: `roles.prometheus.plain_http: true`",
        )
    ]
    assert sentences(cluster(ca=False, plain_http=True), "node_exporter", "gpu1") == []


def test_problems():
    assert sentences(cluster(), "prometheus", "head1") == []
    named = cluster(extra_jobs={"slurm": {"targets": ("a:1",)}})
    assert sentences(named, "prometheus", "head1") == [
        ("extra_jobs.slurm", "The job name slurm is reserved by rackwright.", "choose another name")
    ]


def test_alerts_that_go_nowhere_are_warned_of():
    found = list(head(cluster(others=False)).options["prometheus"].warnings(cluster(others=False)))
    assert [sentence for _, sentence, _ in found] == [
        "No Alertmanager is declared: alerts are evaluated but not sent."
    ]
    assert list(HEAD.options["prometheus"].warnings(SITE)) == []


def test_targets_have_the_labels_of_their_nodes():
    first, *_ = json.loads(targets_json(SITE, jobs_of(SITE)["node"]))
    assert first == {
        "targets": ["10.9.0.10:9100"],
        "labels": {
            "__metrics_path__": "/metrics",
            "__scheme__": "https",
            "instance": "head1:9100",
            "node": "head1",
            "role": "head",
            "sku": HEAD.sku.name,
        },
    }


def test_what_is_probed_has_the_labels_of_its_own_node():
    host, switch = json.loads(targets_json(SITE, jobs_of(SITE)["blackbox"]))
    assert host["targets"] == switch["targets"] == ["10.9.0.10:9115"]
    assert host["labels"] == {
        "__metrics_path__": "/probe",
        "__param_module": "icmp",
        "__param_target": "10.9.0.11",
        "__scheme__": "https",
        "__scrape_interval__": "300s",
        "__scrape_timeout__": "20s",
        "instance": "10.9.0.11",
        "node": "gpu1",
        "probe": "icmp",
        "role": "worker",
        "sku": SITE.by_name["gpu1"].sku.name,
    }
    assert switch["labels"]["instance"] == "switch1:161"
    assert "node" not in switch["labels"]


def test_series_that_name_their_nodes_get_no_labels_of_the_server():
    (one,) = json.loads(targets_json(SITE, jobs_of(SITE)["slurm"]))
    assert set(one["labels"]) == {"__metrics_path__", "__scheme__", "instance"}


def test_an_exporter_without_certificate_gets_no_password():
    config = yaml.safe_load(texts.config_yml(SITE, HEAD, HEAD.options["prometheus"]))
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    assert "basic_auth" not in jobs["bare"]
    assert "basic_auth" in jobs["node"]
    (one,) = json.loads(targets_json(SITE, jobs_of(SITE)["bare"]))
    assert one["labels"]["__scheme__"] == "http"


def test_settings():
    assert texts.config_yml(SITE, HEAD, HEAD.options["prometheus"]) == expected("prometheus/prometheus.yml")


def test_one_of_a_pair_tells_itself_apart_and_alertmanager_does_not_see_it():
    pair = cluster(nodes=("head1", "head2"))
    config = yaml.safe_load(texts.config_yml(pair, head(pair), head(pair).options["prometheus"]))
    assert config["global"]["external_labels"]["replica"] == "head1"
    assert config["alerting"]["alert_relabel_configs"] == [{"regex": "replica", "action": "labeldrop"}]


def test_the_password_is_in_no_file_that_the_plan_shows():
    plan = planned(SITE, HEAD)
    assert content(plan, texts.conf(HEAD, HEAD.options["prometheus"])).count("(secret") == 0
    assert content(plan, PrometheusOptions.password_file) == "(secret monitoring_password)"
    assert content(plan, texts.password_file("metrics_password")) == "(secret metrics_password)"


class Api(FakeHost):
    """Answers of Prometheus' HTTP API, by what a path contains."""

    def run(self, command, *args):
        if not command.startswith("sh -c"):
            return Reply(127, "", "not found")
        data = next((value for text, value in self.replies.items() if text in args[-1]), None)
        return Reply(0, "<html>" if data is None else json.dumps({"status": "success", "data": data}), "")


def series(*pairs):
    return {"result": [{"metric": labels, "value": [1, str(value)]} for labels, value in pairs]}


def result(name, replies):
    return judged("prometheus", CHECKS, name, SITE, HEAD, Api(replies))


LOADED = "Prometheus has loaded its settings"
TARGETS = "Prometheus scrapes every declared target"
RULES = "every rule of Prometheus is evaluated"
NOTIFIES = "Prometheus sends alerts to Alertmanager"


@pytest.mark.parametrize("name", [LOADED, TARGETS, RULES, NOTIFIES])
def test_an_answer_that_is_none_is_unknown(name):
    assert result(name, {}).status == "UNKNOWN"
    assert judged("prometheus", CHECKS, name, SITE, HEAD, FakeHost({})).status == "UNKNOWN"
    for broken in (None, {}, [], {"result": [{}]}, {"result": "x"}, {"groups": [{}]}):
        assert result(name, {"api": broken}).status in ("UNKNOWN", "FAIL"), broken


def test_settings_that_were_refused_fail():
    mine, other = {"node": "head1"}, {"node": "head2"}
    assert result(LOADED, {"query": series((mine, 1), (other, 0))}).status == "PASS"
    assert result(LOADED, {"query": series((mine, 0))}).status == "FAIL"
    assert result(LOADED, {"query": series((other, 1))}).status == "UNKNOWN"


def test_every_target_has_to_answer():
    names = [
        *(("node", f"{name}:9100") for name in ("head1", "gpu1", "gpu2")),
        *(("blackbox", "10.9.0.11"), ("blackbox", "switch1:161"), ("slurm", "head1:9341")),
        *(("bare", "head1:9400"), ("prometheus", "head1:9090")),
    ]
    up = [({"job": job, "instance": instance}, 1) for job, instance in names]
    assert result(TARGETS, {"query": series(*up)}).status == "PASS"
    down = result(TARGETS, {"query": series(*up[1:], (up[0][0], 0))})
    assert (down.status, down.evidence) == ("FAIL", "node head1:9100 does not answer")
    seldom = result(TARGETS, {"query": series(*(one for one in up if one[0]["instance"] != "switch1:161"))})
    assert seldom.status == "WARN"
    assert seldom.evidence == "1 of 8 targets with long intervals have not been scraped yet"
    missing = result(TARGETS, {"query": series(*up[1:])})
    assert (missing.status, missing.evidence) == ("FAIL", "node head1:9100 is not a target")


def rules(*found):
    return {
        "rules": {
            "groups": [{"rules": [dict(zip(("name", "health", "state"), one, strict=True)) for one in found]}]
        }
    }


def test_rules_have_to_be_evaluated_and_the_watchdog_to_fire():
    watchdog = ("Watchdog", "ok", "firing")
    assert result(RULES, rules(watchdog, ("NodeDown", "ok", "inactive"))).status == "PASS"
    assert result(RULES, rules(watchdog, ("NodeDown", "err", "inactive"))).status == "FAIL"
    assert result(RULES, rules(watchdog, ("NodeDown", "unknown", "inactive"))).status == "UNKNOWN"
    assert result(RULES, rules(("NodeDown", "ok", "inactive"))).evidence == (
        "the alert Watchdog, which always fires, does not fire"
    )


def test_alerts_have_to_reach_every_alertmanager():
    known = {"alertmanagers": {"activeAlertmanagers": [{"url": "x"}]}, "query": series()}
    assert result(NOTIFIES, known).status == "PASS"
    assert result(NOTIFIES, known | {"alertmanagers": {"activeAlertmanagers": []}}).status == "FAIL"
    assert result(NOTIFIES, known | {"query": series(({}, 3))}).status == "FAIL"
