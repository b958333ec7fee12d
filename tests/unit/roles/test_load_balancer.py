"""The load_balancer role: options, haproxy's files, and its checks."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from rackwright.model.cluster import Cluster
from rackwright.model.types import NetworkPurpose
from rackwright.roles.load_balancer import texts
from rackwright.roles.load_balancer.options import UNIT, LoadBalancerOptions
from rackwright.roles.load_balancer.verify import _ASK, CHECKS
from rackwright.roles.site_ca.options import SiteCaOptions
from tests.unit.roles.container_site import never_passes
from tests.unit.roles.fake_facts import files, unit
from tests.unit.roles.fake_host import FakeHost, judged, planned
from tests.unit.roles.sites import head, site

WEB: dict[str, Any] = {"port": 443, "node_port": 30080, "health": "/healthz"}


def _site(**services: dict[str, Any]) -> Cluster:
    options = LoadBalancerOptions(services=services or {"web": WEB})
    return site({"load_balancer": options, "site_ca": SiteCaOptions()})


def _options(cluster: Cluster) -> LoadBalancerOptions:
    found = head(cluster).options["load_balancer"]
    assert isinstance(found, LoadBalancerOptions)
    return found


@pytest.mark.parametrize(
    ("services", "where", "text"),
    [
        ({"a": WEB, "b": WEB}, "services.b.port", "a has port 443 already."),
        ({"a": {**WEB, "nodes": "gpu9"}}, "services.a.nodes", "gpu9 is not a node of the cluster."),
        ({"a": {**WEB, "workload": "ray"}}, "services.a", "No worker runs this service."),
    ],
)
def test_mistakes(services, where, text):
    cluster = _site(**services)
    assert (where, text) in [(path, found) for path, found, _ in _options(cluster).problems(cluster)]


def test_https_needs_a_ca():
    cluster = site({"load_balancer": LoadBalancerOptions(services={"web": WEB})})
    assert [path for path, _, _ in _options(cluster).problems(cluster)] == ["services"]
    plain = site({"load_balancer": LoadBalancerOptions(services={"web": {**WEB, "tls": False}})})
    assert list(_options(plain).problems(plain)) == []


def test_the_configuration():
    cluster = _site()
    text = texts.files(cluster, _options(cluster))[texts.CONF]
    assert "bind :443 ssl crt /etc/haproxy/rackwright/services.pem alpn h2,http/1.1\n" in text
    assert "    server gpu1 10.9.0.11:30080\n    server gpu2 10.9.0.12:30080\n" in text
    assert "option httpchk GET /healthz" in text
    listener = _options(cluster).listeners(head(cluster))[0]
    assert (listener.ports, listener.purposes) == ((443, 443), frozenset({NetworkPurpose.EXTERNAL}))


def test_the_plan_of_a_bare_head():
    cluster = _site()
    plan = planned(cluster, head(cluster))
    assert plan.error is None
    names = [entry.name for entry in plan.operations if entry.role == "load_balancer"]
    assert names[0] == "Install haproxy"
    assert names[-1] == "Start the load balancer with its settings"


def _table(first: str, second: str) -> str:
    rows = [f"web,{name},0,0,{status}," for name, status in (("gpu1", first), ("gpu2", second))]
    return "\n".join(["# pxname,svname,qcur,qmax,status,", *rows, "web,BACKEND,0,0,UP,", ""])


@pytest.mark.parametrize(
    ("printed", "status", "evidence"),
    [
        (_table("UP", "UP"), "PASS", "every node answers"),
        (_table("UP", "DOWN"), "FAIL", "web on gpu2 is DOWN"),
        (_table("UP", "UP").replace("web,gpu2", "web,other"), "FAIL", "web on gpu2 is missing"),
        ("rubbish", "UNKNOWN", "no table"),
        ("", "UNKNOWN", "no table"),
    ],
)
def test_nodes_that_do_not_answer(printed, status, evidence):
    cluster = _site()
    answers = {f"sh -c {shlex.quote(_ASK)}": printed}
    name = "every node of each service answers"
    result = judged("load_balancer", CHECKS, name, cluster, head(cluster), FakeHost(answers))
    assert (result.status, evidence in result.evidence) == (status, True), result


def test_changed_files_and_a_stopped_unit():
    cluster = _site()
    wanted = dict(texts.files(cluster, _options(cluster)))
    wanted[texts.CONF] += "# more\n"
    name = "the load balancer's files are as declared"
    assert (
        judged("load_balancer", CHECKS, name, cluster, head(cluster), FakeHost(files(wanted))).status
        == "FAIL"
    )
    name, answers = "the load balancer is running", unit(UNIT, active="failed")
    assert judged("load_balancer", CHECKS, name, cluster, head(cluster), FakeHost(answers)).status == "FAIL"


def test_nothing_passes_without_answers():
    cluster = _site()
    never_passes("load_balancer", CHECKS, cluster, head(cluster))
