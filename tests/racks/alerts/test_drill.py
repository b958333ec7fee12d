"""Every alert that a fault of the lab can trigger fires, reaches a webhook through Alertmanager, and resolves."""

from __future__ import annotations

import json

import pytest

from rackwright.drill.drills import DRILLS
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_QUICK = ("OtherUnitsFailed", "NodeDown")
LEAST = 70
"""Rules that the lab has to be able to trigger."""


def drilled(site: Site, *options: str) -> list[dict[str, object]]:
    """Results of `rackwright drill alerts`; the test judges them, not the exit status alone."""
    ran = site.cli("drill", "alerts", str(site.file), "--json", *options, expect=None, timeout=3600)
    assert ran.status in (0, 3), ran
    found: list[dict[str, object]] = json.loads(ran.out)["drills"]
    return found


@pytest.mark.smoke
def test_two_alerts_fire_and_resolve(rack: Site):
    found = drilled(rack, *(word for name in _QUICK for word in ("--alert", name)))
    assert {one["alert"]: one["outcome"] for one in found} == dict.fromkeys(_QUICK, "passed")


def test_every_alert_with_a_drill_fires_and_resolves(rack: Site):
    found = drilled(rack)
    assert len(found) == len(DRILLS) >= LEAST
    assert [one for one in found if one["outcome"] != "passed"] == []


def test_nothing_is_left_of_the_drills(rack: Site):
    """As declared, no fault, and no alert that was not there before."""
    assert rack.cli("plan", str(rack.file)).out.strip() == "plan: nothing to change on 3 of 3 nodes"
    assert [node.faults for node in rack.rack.status().nodes] == [{}, {}, {}]
