"""A restart through the BMC, whose answers to its orders are lost."""

from __future__ import annotations

import pytest

from rackwright.bmc.interface import Power
from rackwright.engine.boots import NotBooted
from rackwright.firmware.restart import off_and_on


def orders(machine):
    return [body["ResetType"] for _, path, body in machine.bmc.changes() if path.endswith("Reset")]


def test_what_was_carried_out_without_an_answer_is_seen(machine):
    machine.loses_answers = True
    asking = machine.asking()
    off_and_on(asking)
    asking.close()
    assert machine.power() is Power.ON
    assert machine.boots == 1
    assert orders(machine) == ["GracefulShutdown", "On"], "each was sent once"


def test_a_power_button_that_was_not_pressed_leaves_the_node_running(machine):
    machine.loses_answers, machine.shuts_down = True, False
    asking = machine.asking()
    with pytest.raises(NotBooted, match="is still running"):
        off_and_on(asking)
    asking.close()
    assert (machine.power(), machine.boots) == (Power.ON, 0)
    assert orders(machine) == ["GracefulShutdown"]
