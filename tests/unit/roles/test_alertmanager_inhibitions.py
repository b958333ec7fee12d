"""Which alert suppresses which, decided as Alertmanager decides it (inhibit.go and labels/matcher.go of 0.28)."""

from __future__ import annotations

import re

import pytest

from rackwright.alerts.catalogue import ALERTS
from rackwright.roles.alertmanager.settings import INHIBITIONS

PLACE = {"node": "w1", "rack": "r1", "leaf": "leaf1", "sku": "gpu"}
RACK = {"rack": "r1"}
UPS = {"device": "ups1", "instance": "10.0.0.5", "kind": "ups", **RACK}
_MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"(.*)"')


def named():
    """Alerts that the rules name."""
    return {
        name
        for rule in INHIBITIONS
        for matchers in rule.values()
        for one in matchers
        if one.startswith("alertname") and '"' in one
        for name in one.partition('"')[2].rstrip('"').split("|")
    }


def matches(matcher, labels):
    name, how, wanted = _MATCHER.fullmatch(matcher).groups()
    has = labels.get(name, "")
    same = re.fullmatch(wanted, has) is not None if "~" in how else has == wanted
    return not same if how.startswith("!") else same


def suppressed(while_firing, labels, alert, its_labels):
    source, target = (
        {"alertname": name, "severity": ALERTS[name].severity.value, **given}
        for name, given in ((while_firing, labels), (alert, its_labels))
    )
    return any(
        all(matches(one, source) for one in rule["source_matchers"])
        and all(matches(one, target) for one in rule["target_matchers"])
        and all(source.get(label, "") == target.get(label, "") for label in rule["equal"])
        for rule in INHIBITIONS
    )


def test_they_name_alerts_that_there_are():
    assert named() >= {"NodeDown", "LeafDown", "RackDown"}
    assert named() <= ALERTS.keys()


@pytest.mark.parametrize("alert", ["SlurmdDown", "BmcUnreachable", "FanFailed", "BmcSensorCritical"])
def test_what_follows_from_a_node_that_is_down(alert):
    assert suppressed("NodeDown", PLACE, alert, PLACE)
    assert not suppressed("NodeDown", {**PLACE, "node": "w2"}, alert, PLACE)


@pytest.mark.parametrize("alert", ["NodePoweredOff", "PsuFailed", "InletTemperatureHigh"])
def test_why_a_node_is_down_is_not_suppressed(alert):
    """NodePoweredOff can only fire where NodeDown does."""
    assert not suppressed("NodeDown", PLACE, alert, PLACE)


def test_a_leaf_or_a_rack_takes_its_nodes_along():
    assert suppressed("LeafDown", {"leaf": "leaf1"}, "FabricPortDown", PLACE)
    assert suppressed("LeafDown", {"leaf": "leaf1"}, "FabricPortsMissing", PLACE)
    assert suppressed("RackDown", RACK, "NodeDown", PLACE)
    assert not suppressed("RackDown", {"rack": "r2"}, "NodeDown", PLACE)
    assert not suppressed("RackDown", RACK, "SlurmdDown", PLACE)


def test_a_leaf_says_nothing_of_nodes_that_do_not_answer():
    """It counts ports of nodes that do; and its label may be a range of leaves that all nodes of a unit share."""
    assert not suppressed("LeafDown", {"leaf": "leaf1"}, "NodeDown", PLACE)


@pytest.mark.parametrize("alert", ["PduOverloaded", "UpsOnBattery", "UpsBatteryLow"])
def test_a_device_of_a_rack_says_nothing_of_its_nodes(alert):
    assert not suppressed(alert, UPS, "NodeDown", PLACE)
