"""Nodes that rackwright itself takes down raise no alert, and no silence outlives its run for long."""

from __future__ import annotations

import json
import signal
import time
from datetime import UTC, datetime

import pytest

from tests.racks.alerts_pair.asking import until
from tests.racks.alerts_pair.webhooks import webhooks
from tests.racks.program import Running
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_MINUTES = 15
_REMOVE = "rm -f /etc/systemd/system/prometheus-node-exporter.service.d/90-rackwright.conf"
"""What the next apply has to put back."""


def _silences(rack: Site) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(rack.on("head1", "amtool silence query --output=json"))
    return found


def _until_silenced(rack: Site) -> Running:
    """An apply on the worker that has silenced it, and stands still while it changes it."""
    running = rack.start("apply", str(rack.file), "--yes", "--limit", "worker1")
    rack.wait_for_event(running, event="start")
    running.process.send_signal(signal.SIGSTOP)
    return running


def test_an_apply_silences_its_nodes_while_it_lasts(rack: Site):
    rack.on("worker1", _REMOVE)
    running = _until_silenced(rack)
    (silence,) = _silences(rack)
    assert '"worker1"' in json.dumps(silence["matchers"])
    assert str(silence["comment"]).startswith("rackwright run ")
    running.process.send_signal(signal.SIGCONT)
    assert running.wait().status == 0
    until(lambda: not _active_beyond(rack, 4), "end of the silence")


def test_a_killed_run_leaves_a_silence_that_ends_by_itself(rack: Site):
    rack.on("worker1", _REMOVE)
    running = _until_silenced(rack)
    running.process.kill()
    running.wait()
    assert _active_beyond(rack, 0)
    assert not _active_beyond(rack, _MINUTES)
    rack.apply()
    rack.on("head1", "amtool silence expire $(amtool silence query -q)")


def test_a_node_that_goes_down_during_its_run_raises_no_alert(rack: Site):
    """The run is held up for longer than `NodeDown` waits on this rack; without a run it alerts (test_pair.py)."""
    rack.on("worker1", _REMOVE)
    with webhooks(rack) as hooks:
        running = _until_silenced(rack)
        rack.rack.power("worker1", "off")
        try:
            until(
                lambda: "NodeDown" in rack.on("head1", "amtool alert query --silenced node=worker1"),
                "NodeDown",
            )
            time.sleep(10)
            assert hooks.sent("NodeDown", {"node": "worker1"}, "firing") == ()
        finally:
            rack.heal("worker1")
            running.process.send_signal(signal.SIGCONT)
            running.wait()
    rack.apply()
    rack.on("head1", "amtool silence expire $(amtool silence query -q) 2>/dev/null || :")


def _active_beyond(rack: Site, minutes: float) -> list[str]:
    """Comments of silences that end more than this many minutes from now."""
    now = datetime.now(UTC)
    return [
        str(one["comment"])
        for one in _silences(rack)
        if (datetime.fromisoformat(str(one["endsAt"])) - now).total_seconds() > 60 * minutes
    ]
