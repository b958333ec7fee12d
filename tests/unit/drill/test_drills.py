"""The drills that there are, and which cluster can be drilled."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from rackwright.alerts.catalogue import ALERTS
from rackwright.cli import drill as cli
from rackwright.cli.drill_view import show_table
from rackwright.clusterfile.load import load_cluster
from rackwright.drill.drills import DRILLS
from rackwright.drill.model import DrillResult, LabFault, Outcome, Shell
from rackwright.drill.prepare import webhook_of, without_drill
from rackwright.errors import RackwrightError
from rackwright.lab.faults import FAULTS

INVENTORY = Path(__file__).resolve().parents[3] / "inventory"
DRILL = load_cluster(INVENTORY / "drill.yaml", locked=False)
EACH = pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.alert)


def test_each_alert_has_one_drill_at_most():
    assert [alert for alert, count in Counter(drill.alert for drill in DRILLS).items() if count > 1] == []


def test_two_dozen_alerts_can_be_drilled():
    assert len(DRILLS) >= 24


@EACH
def test_a_drill_is_for_an_alert_that_there_is(drill):
    assert drill.alert in ALERTS


@EACH
def test_the_shipped_rack_has_a_node_for_it(drill):
    assert drill.on(DRILL) is not None


@EACH
def test_its_fault_is_one_of_the_labs_or_can_be_undone(drill):
    if isinstance(drill.act, LabFault):
        assert drill.act.kind in FAULTS or drill.act.kind.startswith("gpu:")
    else:
        assert isinstance(drill.act, Shell)
        assert drill.act.make != drill.act.heal


@EACH
def test_the_shipped_rack_evaluates_the_alert(drill):
    """Every job that the rule reads is scraped there."""
    jobs = {
        scrape.job
        for node in DRILL.nodes
        for options in node.options.values()
        if hasattr(options, "scrapes")
        for scrape in options.scrapes(DRILL, node)
    }
    assert ALERTS[drill.alert].jobs <= jobs


def test_what_has_no_drill_is_named():
    left = without_drill()
    assert "Watchdog" in left
    assert len(left) + len(DRILLS) == len(ALERTS)


def test_the_shipped_rack_can_be_drilled():
    node, port = webhook_of(DRILL)
    assert (node.name, port) == ("head1", 9099)


def changed(**options):
    nodes = []
    for node in DRILL.nodes:
        roles = dict(node.options)
        for role, change in options.items():
            if role in roles:
                if change is None:
                    del roles[role]
                else:
                    roles[role] = roles[role].model_copy(update=change)
        nodes.append(node.model_copy(update={"options": roles}))
    return DRILL.model_copy(update={"nodes": tuple(nodes)})


def test_a_rack_without_a_webhook_is_refused():
    with pytest.raises(RackwrightError, match="no Alertmanager that a drill can listen to"):
        webhook_of(changed(alertmanager={"drill_port": None}))


def test_a_rack_without_prometheus_is_refused():
    with pytest.raises(RackwrightError, match="runs no Prometheus"):
        webhook_of(changed(prometheus=None))


def test_a_rack_whose_alerts_take_hours_is_refused():
    with pytest.raises(RackwrightError, match="waits as long as on a site"):
        webhook_of(changed(prometheus={"hold_factor": 1.0}))


def test_an_alert_without_a_drill_is_refused(tmp_path):
    with pytest.raises(RackwrightError, match="No drill makes Watchdog fire"):
        cli.alerts_command(INVENTORY / "drill.yaml", alert=["Watchdog"])


RESULTS = (
    DrillResult("NodeDown", "a cable is pulled", "worker2", Outcome.PASSED, 40.2, 3.1),
    DrillResult("GpuHot", "heat", "worker1", Outcome.NOT_FIRED, detail="not within 180 s"),
)


def test_the_table(capsys):
    show_table(RESULTS, ("Watchdog",))
    out = capsys.readouterr().out
    assert "40 s" in out
    assert "not fired: not within 180 s" in out
    assert "1 of 2 alerts fired and resolved" in out
    assert "without a drill: Watchdog" in out


def test_the_document():
    assert json.loads(json.dumps(RESULTS[0].to_json())) == {
        "alert": "NodeDown",
        "fault": "a cable is pulled",
        "node": "worker2",
        "outcome": "passed",
        "fired_after_seconds": 40.2,
        "resolved_after_seconds": 3.1,
        "detail": "",
    }
