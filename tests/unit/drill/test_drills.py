"""The drills that there are, and which cluster can be drilled."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest
import typer

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


def test_seventy_alerts_can_be_drilled():
    assert len(DRILLS) >= 70


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
def test_its_commands_are_shell(drill):
    """sh reads them, and runs nothing."""
    commands = (drill.act.then,) if isinstance(drill.act, LabFault) else (drill.act.make, drill.act.heal)
    for command in commands:
        ran = subprocess.run(["sh", "-n", "-c", command], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, ""), command


@EACH
def test_what_it_changes_of_an_alert_there_is(drill):
    """Numbers of the shipped rack that this drill needs are those of thresholds that exist."""
    change = DRILL.primary.options["prometheus"].alerts.get(drill.alert)
    assert change is None or set(change.thresholds) <= set(ALERTS[drill.alert].thresholds)


def test_the_shipped_rack_changes_no_alert_without_a_drill():
    assert set(DRILL.primary.options["prometheus"].alerts) <= {drill.alert for drill in DRILLS}


def test_drills_beside_each_other_change_fields_of_different_gpus():
    """The job of others has GPU 0."""
    of_lane = {
        lane: {drill.labels["gpu"] for drill in DRILLS if drill.lane == lane} for lane in ("gpu", "gpu links")
    }
    assert of_lane["gpu"] <= set("12345")
    assert of_lane["gpu links"] <= set("67")


def test_what_a_drill_needs_comes_with_a_command():
    needs = {drill.alert: drill.needs for drill in DRILLS if drill.needs is not None}
    assert set(needs) == {
        *("NodeDrifted", "DriftUnknown", "DriftCheckNotRunning"),
        *("BackupFailed", "BackupTooOld", "LogsKeeperFailing"),
    }
    assert all(need.path.startswith("/") and need.command for need in needs.values())


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
    with pytest.raises(RackwrightError, match="no Alertmanager with a webhook for drills"):
        webhook_of(changed(alertmanager={"drill_port": None}))


def test_a_rack_without_prometheus_is_refused():
    with pytest.raises(RackwrightError, match="runs no Prometheus"):
        webhook_of(changed(prometheus=None))


def test_a_rack_whose_alerts_take_hours_is_refused():
    with pytest.raises(RackwrightError, match="uses production alert delays"):
        webhook_of(changed(prometheus={"hold_factor": 1.0}))


def test_an_alert_without_a_drill_is_refused(tmp_path):
    with pytest.raises(RackwrightError, match="No drill makes Watchdog fire"):
        cli.alerts_command(INVENTORY / "drill.yaml", alert=["Watchdog"])


RESULTS = (
    DrillResult("NodeDown", "a cable is pulled", "worker2", Outcome.PASSED, 40.2, 3.1),
    DrillResult("GpuHot", "heat", "worker1", Outcome.NOT_FIRED, detail="not within 180 s"),
)


@pytest.mark.parametrize(
    ("outcomes", "of_all", "of_given"),
    [
        ([Outcome.PASSED], 0, 0),
        ([Outcome.PASSED, Outcome.SKIPPED], 0, 4),
        ([Outcome.SKIPPED], 4, 4),
        ([Outcome.SKIPPED, Outcome.NOT_FIRED], 3, 3),
        ([Outcome.PASSED, Outcome.ERROR], 3, 3),
    ],
)
def test_a_skipped_drill_is_no_pass(monkeypatch, outcomes, of_all, of_given):
    results = tuple(DrillResult("NodeDown", "a cable is pulled", "worker2", one) for one in outcomes)
    monkeypatch.setattr(cli, "wait_for_silences", lambda *_: None)
    monkeypatch.setattr(cli, "Notifications", lambda *_: nullcontext())
    monkeypatch.setattr(cli, "run_drills", lambda *_: results)
    for given, status in ((None, of_all), (["NodeDown"], of_given)):
        with pytest.raises(typer.Exit) as ended:
            cli.alerts_command(INVENTORY / "drill.yaml", alert=given)
        assert ended.value.exit_code == status


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
