"""Two heads collect the same, send each alert once, and either of them is enough."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rackwright.lab import network
from rackwright.lab.process import run
from rackwright.prometheus.query import Query, run_queries
from rackwright.status import Status
from rackwright.verify import verify
from tests.racks.alerts_pair.asking import own, until
from tests.racks.alerts_pair.conftest import HEADS
from tests.racks.alerts_pair.webhooks import webhooks
from tests.racks.site import Site
from tests.racks.stranger import plugged_in

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_UNIT = "rackwright-test-fails"
_ALERT = {"alertname": "OtherUnitsFailed", "node": "worker1"}
_GOSSIP = 9094
_GREET = """
import socket, ssl, sys
address, port, *certificate = sys.argv[1:]
context = ssl._create_unverified_context()
if certificate:
    context.load_cert_chain(*certificate)
with context.wrap_socket(socket.create_connection((address, int(port)), timeout=5)) as greeting:
    try:
        greeting.sendall(b"hello")
        print("talks" if greeting.recv(1) else "closed")
    except ssl.SSLError as error:
        print(error.reason)
    except TimeoutError:
        print("listens")
"""


@contextmanager
def _failed_unit(rack: Site) -> Iterator[None]:
    rack.on("worker1", f"systemd-run --quiet --unit={_UNIT} false")
    try:
        yield
    finally:
        rack.on("worker1", f"systemctl reset-failed {_UNIT} || :")


@pytest.mark.smoke
def test_everything_is_as_declared_and_stays_so(rack: Site):
    assert rack.cli("plan", str(rack.file)).out.strip() == "plan: nothing to change on 3 of 3 nodes"
    with rack.here():
        report = verify(rack.cluster, roles=frozenset({"prometheus", "alertmanager"}))
    wrong = [
        one
        for one in report.results
        if one.status not in (Status.PASS, Status.OUT_OF_SCOPE)
        and "federate-south" not in str(one)
        and one.check != "notifications reach their receivers"  # the webhook is there during tests alone
    ]
    assert wrong == []


def test_both_collect_the_same(rack: Site):
    """All targets but the other site, which is on no more than one of the heads."""
    seen = [
        {
            (str(labels["job"]), str(labels["instance"]), str(one["value"]))
            for one in own(rack, head, 'up{job!~"federate.*"} * 1')
            if isinstance(labels := one["metric"], dict)
        }
        for head in HEADS
    ]
    jobs_and_instances = [{entry[:2] for entry in one} for one in seen]
    assert jobs_and_instances[0] == jobs_and_instances[1]
    assert {job for job, _ in jobs_and_instances[0]} == {"node", "prometheus", "alertmanager"}
    assert len(jobs_and_instances[0]) == 3 + 2 + 2


@pytest.mark.smoke
def test_an_alert_is_sent_once(rack: Site):
    with webhooks(rack) as hooks:
        labels = {"node": "worker1"}
        with _failed_unit(rack):
            assert len(hooks.wait("OtherUnitsFailed", labels, "firing")) == 1
        assert len(hooks.wait("OtherUnitsFailed", labels, "resolved")) == 1


def test_a_silence_counts_on_both(rack: Site):
    alert = " ".join(f"{name}={value}" for name, value in _ALERT.items())
    rack.on("head2", f"amtool silence add -a test -d 10m -c test {alert}")
    until(lambda: "test" in rack.on("head1", f"amtool silence query {alert}"), "silence on head1")
    rack.on("head1", f"amtool silence expire $(amtool silence query -q {alert})")
    until(lambda: not rack.on("head2", f"amtool silence query -q {alert}").strip(), "end of it on head2")


def test_gossip_is_for_the_pair_alone(rack: Site):
    """Not for a stranger on the management network, nor for a node with another certificate of the site's CA."""
    with plugged_in(rack, "10.93.0.200/24") as stranger:
        for address in HEADS.values():
            argv = network.inside(stranger.namespace, [sys.executable, "-c", _GREET, address, str(_GOSSIP)])
            assert run(argv, timeout=30).stdout.strip() == "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    folder = "/etc/rackwright-exporters/node_exporter"
    said = rack.on(
        "worker1", f"python3 -c '{_GREET}' {HEADS['head1']} {_GOSSIP} {folder}/tls.crt {folder}/tls.key"
    )
    assert said.strip() == "SSLV3_ALERT_BAD_CERTIFICATE"


def test_one_head_is_enough(rack: Site):
    """Without the first head: alerts are sent, silences are kept, and rackwright asks the second."""
    rack.rack.power("head1", "off")
    try:
        with webhooks(rack, "head2") as hooks, _failed_unit(rack):
            assert hooks.wait("OtherUnitsFailed", {"node": "worker1"}, "firing") == ("head2",)
            assert hooks.wait("NodeDown", {"node": "head1"}, "firing") == ("head2",)
        with rack.here():
            (result,) = run_queries(rack.cluster, [Query('up{job="node",node="worker1"}')])
        assert result.series[0].last == 1
        rack.on("head2", "amtool silence add -a test -d 10m -c while-away node=nobody")
    finally:
        rack.heal("head1")
    until(
        lambda: "while-away" in rack.on("head1", "amtool silence query node=nobody || :"), "silence on head1"
    )
    rack.on("head1", "amtool silence expire $(amtool silence query -q node=nobody)")


def test_a_head_without_prometheus_is_not_asked(rack: Site):
    rack.on("head1", "systemctl stop prometheus")
    try:
        with rack.here():
            (result,) = run_queries(rack.cluster, [Query('up{job="prometheus",node="head1"}')])
        assert result.error is None
    finally:
        rack.on("head1", "systemctl start prometheus")
    assert rack.cli("plan", str(rack.file)).out.strip() == "plan: nothing to change on 3 of 3 nodes"
