"""The blackbox_exporter role: what it asks follows from the cluster file; how it asks, and its checks."""

from __future__ import annotations

import pytest
import yaml

from rackwright.exporters import drop_in
from rackwright.model.monitoring import Probe
from rackwright.model.types import LinkKind, NodeRole
from rackwright.osfamily.known import RELEASES
from rackwright.roles.blackbox_exporter import texts
from rackwright.roles.blackbox_exporter.options import BlackboxExporterOptions
from rackwright.roles.blackbox_exporter.probes import probes_of
from rackwright.roles.blackbox_exporter.verify import CHECKS
from rackwright.roles.dns.options import DnsOptions
from rackwright.roles.node_exporter.options import NodeExporterOptions
from rackwright.roles.site_ca.options import SiteCaOptions
from tests.factories import make_address, make_cluster, make_network, make_node
from tests.unit.roles.fake_facts import files
from tests.unit.roles.fake_host import FakeHost, content, errors_in, judged, planned
from tests.unit.roles.sites import expected, head, site, worker

OPTIONS = BlackboxExporterOptions()
ROLES = {"blackbox_exporter": OPTIONS, "site_ca": SiteCaOptions(), "node_exporter": NodeExporterOptions()}
SITE = site(ROLES)
HEAD = head(SITE)
PATH = "/etc/rackwright-exporters/blackbox_exporter/blackbox.yml"
ASKS = "blackbox_exporter has its declared probes"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"certificate_seconds": 300}, "Input should be less than or equal to 240"),
        ({"extra": {"a b": {"probe": "icmp", "target": "h"}}}, "String should match pattern '^[a-z][a-z0-9-]{0,30}$'"),
        ({"extra": {"a": {"probe": "icmp", "target": "h:1"}}}, "h:1 is not an address or a name."),
        ({"extra": {"a": {"probe": "tcp", "target": "h"}}}, "h is not host:port."),
        ({"extra": {"a": {"probe": "tls", "target": "h:x"}}}, "h:x is not host:port."),
        ({"extra": {"a": {"probe": "http", "target": "ftp://h"}}}, "ftp://h is not a URL."),
        ({"extra": {"a": {"probe": "http", "target": "https://u:p@h/"}}}, "https://u:p@h/ is not a URL."),
        ({"extra": {"a": {"probe": "gopher", "target": "h"}}}, "Input should be 'http', 'icmp', 'tcp' or 'tls'"),
    ],
)  # fmt: skip
def test_options_that_are_refused(given, sentence):
    assert errors_in(BlackboxExporterOptions, given) == [sentence]


def test_it_runs_on_the_primary_head_alone():
    assert [node.name for node in SITE.running("blackbox_exporter")] == ["head1"]


def test_every_node_is_asked_by_ping_and_ssh():
    found = probes_of(SITE, HEAD, {})
    names = ("head1", "gpu1", "gpu2")
    assert found["icmp"] == tuple(
        Probe(f"10.9.0.{10 + at}", {"node": name, "network": "management", "probe": "icmp"})
        for at, name in enumerate(names)
    )
    assert found["ssh"] == tuple(
        Probe(f"10.9.0.{10 + at}:22", {"node": name, "probe": "ssh"}) for at, name in enumerate(names)
    )


def test_every_certificate_is_asked_for():
    assert probes_of(SITE, HEAD, {})["tls"] == (
        Probe("10.9.0.10:9115", {"node": "head1", "service": "blackbox_exporter", "probe": "tls"}),
        Probe("10.9.0.10:9100", {"node": "head1", "service": "node_exporter", "probe": "tls"}),
        Probe("10.9.0.11:9100", {"node": "gpu1", "service": "node_exporter", "probe": "tls"}),
        Probe("10.9.0.12:9100", {"node": "gpu2", "service": "node_exporter", "probe": "tls"}),
    )


def test_names_are_asked_of_their_servers():
    assert "dns" not in probes_of(SITE, HEAD, {})
    with_names = site({**ROLES, "dns": DnsOptions()})
    found = probes_of(with_names, head(with_names), {})["dns"]
    assert found == (Probe("10.9.0.10:53", {"node": "head1", "probe": "dns"}),)


def test_only_networks_that_the_head_is_on_are_asked():
    """No network is routed into another; of a network with rails each rail is one."""
    networks = {
        "management": make_network("management", "10.9.0.0/24"),
        "storage": make_network("storage", "10.10.0.0/24"),
        "fabric": make_network("fabric", "10.11.0.0/16", kind=LinkKind.INFINIBAND, rails=2, rail_prefix=24),
        "external": make_network("external", "192.0.2.0/24"),
    }

    def node(name, number, *roles, rails, storage, **more):
        addresses = [
            make_address("management", f"10.9.0.{number}"),
            make_address("external", f"192.0.2.{number}"),
        ]
        addresses += [make_address("fabric", f"10.11.{rail}.{number}", rail=rail) for rail in rails]
        addresses += [make_address("storage", f"10.10.0.{number}")] if storage else []
        return make_node(name, number, *roles, addresses=tuple(addresses), **more)

    nodes = (
        node("head1", 10, NodeRole.HEAD, rails=(1,), storage=False),
        node("gpu1", 11, NodeRole.WORKER, rails=(0, 1), storage=True),
    )
    cluster = make_cluster(*nodes, networks=networks)
    asked = [(probe.target, dict(probe.labels)) for probe in probes_of(cluster, cluster.primary, {})["icmp"]]
    assert asked == [
        ("10.9.0.10", {"node": "head1", "network": "management", "probe": "icmp"}),
        ("10.11.1.10", {"node": "head1", "network": "fabric", "rail": "1", "probe": "icmp"}),
        ("10.9.0.11", {"node": "gpu1", "network": "management", "probe": "icmp"}),
        ("10.11.1.11", {"node": "gpu1", "network": "fabric", "rail": "1", "probe": "icmp"}),
    ]


def test_what_the_site_adds():
    extra = {
        "portal": {"probe": "http", "target": "https://portal.example.com/health"},
        "ldap": {"probe": "tls", "target": "ldap.example.com:636"},
    }
    options = BlackboxExporterOptions.model_validate({"extra": extra, "ssh_seconds": 120})
    scrapes = {dict(one.parameters).get("module"): one for one in options.scrapes(SITE, HEAD)}
    assert scrapes[("http",)].probes == (
        Probe("https://portal.example.com/health", {"probe": "http", "service": "portal"}),
    )
    assert scrapes[("tls",)].probes[-1] == Probe("ldap.example.com:636", {"probe": "tls", "service": "ldap"})


def test_what_prometheus_reads():
    own, *probing = OPTIONS.scrapes(SITE, HEAD)
    assert (own.job, own.port, own.path, own.probes) == ("blackbox", 9115, "/metrics", ())
    assert [(one.path, one.parameters["module"], one.interval_seconds) for one in probing] == [
        ("/probe", ("icmp",), None),
        ("/probe", ("ssh",), 60),
        ("/probe", ("tls",), 120),
    ]


def test_how_it_asks():
    text = texts.conf(SITE, HEAD)
    assert text == expected("blackbox_exporter/blackbox.yml")
    assert {*probes_of(SITE, HEAD, {}), "dns", "http", "tcp"} == set(yaml.safe_load(text)["modules"])
    bare = site({"blackbox_exporter": OPTIONS})
    assert "ca_file" not in texts.conf(bare, head(bare))


def test_the_whole_unit():
    assert drop_in(SITE, HEAD, OPTIONS, texts.arguments(SITE, HEAD, OPTIONS)) == expected(
        "blackbox_exporter/unit.conf"
    )


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_on_every_release(os):
    cluster = site(ROLES, os=os)
    plan = planned(cluster, head(cluster))
    assert plan.error is None
    names = [entry.name for entry in plan.operations if entry.role == "blackbox_exporter"]
    assert names[-2:] == ["Write the blackbox_exporter probes", "Run blackbox_exporter"]
    assert content(plan, PATH) == texts.conf(cluster, head(cluster))
    assert not [
        entry for entry in planned(cluster, worker(cluster)).operations if entry.role == "blackbox_exporter"
    ]


@pytest.mark.parametrize(
    ("text", "status", "evidence"),
    [
        (texts.conf(SITE, HEAD), "PASS", PATH),
        (texts.conf(SITE, HEAD).replace("5s", "50s"), "FAIL", f"{PATH} is not as declared: timeout: 50s"),
        (None, "FAIL", f"{PATH} is missing"),
    ],
)
def test_its_file(text, status, evidence):
    found = judged("blackbox_exporter", CHECKS, ASKS, SITE, HEAD, FakeHost(files({PATH: text})))
    assert (found.status, found.evidence) == (status, evidence)


def test_its_file_is_not_known():
    assert judged("blackbox_exporter", CHECKS, ASKS, SITE, HEAD, FakeHost({})).status == "UNKNOWN"
