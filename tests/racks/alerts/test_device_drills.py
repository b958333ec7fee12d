"""Alerts about power, cooling, switches, PDUs and UPSes, from ipmi_sim and snmpd through the real exporters to a webhook."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from rackwright.alerts import devices as device_alerts
from rackwright.alerts import power as power_alerts
from rackwright.drill.model import Drill, DrillResult, Outcome, Shell
from rackwright.drill.notifications import Notifications
from rackwright.drill.prepare import webhook_of
from rackwright.drill.run import run_drills
from rackwright.prometheus.query import Query, run_queries
from rackwright.status import Status
from rackwright.verify import verify
from tests.racks.alerts.device_drills import BMC_REFUSES, DEVICE_DRILLS, FAN, LEAF_UNPLUGGED
from tests.racks.alerts.devices import BMC_ADDRESS, BMC_HOST, DEVICES, LEAF, SNMP_HOST
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

LIMIT_SECONDS = 120
ALERTS = tuple(rule.name for group in (power_alerts.GROUP, device_alerts.GROUP) for rule in group.rules)
TARGETS = {BMC_ADDRESS, *(one.address for one in DEVICES)}


def drilled(site: Site, drills: Sequence[Drill], *, besides: Sequence[str] = ()) -> list[DrillResult]:
    """Results of drills that did not pass. `besides`: alerts of worker1 that must arrive too."""
    cluster = site.cluster
    node, port = webhook_of(cluster)
    with Notifications(site.rack, node.name, port) as notifications:
        results = run_drills(cluster, site.rack, notifications, drills, LIMIT_SECONDS, print)
        for alert in besides:
            assert notifications.seen(alert, {"node": BMC_HOST}, "firing", 0), f"{alert} was not sent"
    return [one for one in results if one.outcome is not Outcome.PASSED]


def asked(site: Site, expression: str) -> dict[str, float]:
    """Value by alert name, else by target."""
    with site.here():
        (result,) = run_queries(site.cluster, [Query(expression)])
    assert result.error is None, result.error
    return {one.labels.get("alertname") or one.labels["instance"]: one.last for one in result.series}


def until(site: Site, expression: str, holds: Callable[[dict[str, float]], bool]) -> None:
    """Waits until the values match."""
    end = time.monotonic() + 120
    while not holds(found := asked(site, expression)):
        assert time.monotonic() < end, found
        time.sleep(3)


def answering(site: Site, targets: set[str]) -> None:
    """Waits until exactly these devices answer."""
    until(
        site,
        'max by (instance) (ipmi_up{job="ipmi"}) or up{job="snmp"}',
        lambda found: {target for target in TARGETS if found.get(target) == 1} == targets,
    )


@contextmanager
def broken(site: Site, host: str, fault: Shell) -> Iterator[None]:
    """A fault for a while."""
    site.on(host, fault.make)
    try:
        yield
    finally:
        site.on(host, fault.heal)


@pytest.mark.smoke
def test_healthy_devices_raise_no_alert(rack: Site):
    answering(rack, TARGETS)
    until(rack, f'ALERTS{{alertname=~"{"|".join(ALERTS)}"}}', lambda found: not found)


@pytest.mark.smoke
def test_a_fan_that_fails_fires_and_resolves(rack: Site):
    assert drilled(rack, [FAN]) == []


def test_each_alert_of_devices_fires_and_resolves(rack: Site):
    """NodeDown fires in the drill of NodePoweredOff, and does not suppress it."""
    assert {one.alert for one in DEVICE_DRILLS} == set(ALERTS)
    assert drilled(rack, DEVICE_DRILLS, besides=["NodeDown"]) == []


def test_verify_finds_devices_that_do_not_answer(rack: Site):
    """A refused password leaves `up` at 1, so that the checks of Prometheus itself pass."""
    with broken(rack, BMC_HOST, BMC_REFUSES), broken(rack, SNMP_HOST, LEAF_UNPLUGGED):
        answering(rack, TARGETS - {BMC_ADDRESS, LEAF.address})
        assert asked(rack, 'up{job="ipmi"}') == {BMC_ADDRESS: 1}
        assert failing(rack) == {
            ("every declared BMC answers", Status.FAIL, f"no answer from the BMC of worker1 ({BMC_ADDRESS})"),
            ("every declared device answers", Status.FAIL, f"no answer from leaf1 ({LEAF.address})"),
        }
    answering(rack, TARGETS)
    assert failing(rack) == set()


def failing(site: Site) -> set[tuple[str, Status, str]]:
    """Checks of both exporters that do not pass."""
    with site.here():
        report = verify(site.cluster, roles=frozenset({"ipmi_exporter", "snmp_exporter"}))
    passed = {one.check for one in report.results if one.status is Status.PASS}
    wrong = [one for one in report.results if one.status not in (Status.PASS, Status.OUT_OF_SCOPE)]
    assert {"ipmi_exporter runs", "snmp_exporter runs"} <= passed
    return {(one.check, one.status, one.evidence.partition(" (still so")[0]) for one in wrong}
