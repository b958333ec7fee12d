"""What a run meets that it did not expect: other machines, BMCs that lose answers or say Off, Ctrl-C, clocks, full disks."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace

import pytest

from rackwright.bmc.interface import Power
from rackwright.bmc.target import NoAnswer
from rackwright.install import record as records
from rackwright.install import steady
from rackwright.install.erasure import MODE
from rackwright.install.limits import Interrupted
from rackwright.install.machine import Machine
from rackwright.install.record import read
from rackwright.install.run import confirm
from rackwright.install.states import State
from rackwright.install.turns import Turns
from tests.unit.install import operator
from tests.unit.install.site import EXT4, make_site, make_worker

ORDERS = ("set_power", "set_boot", "eject_media", "insert_media", "trust_media")


def orders(machine):
    return [one for one in machine.calls if one.startswith(ORDERS)]


def killed_in(site, monkeypatch, state):
    """A run that was killed as worker1 reached a state."""
    watched = Machine._pause

    def pause(machine):
        if machine.node.name == "worker1" and machine.journal.record.state is state:
            raise Interrupted("killed")
        watched(machine)

    with monkeypatch.context() as patched:
        patched.setattr(Machine, "_pause", pause)
        patched.setattr(Machine, "_start", lambda *_: (_ for _ in ()).throw(Interrupted("killed")))
        site.run(nodes=site.nodes[:1])
    assert read("test", "worker1").state is state


def test_another_machine_behind_the_bmc_when_a_run_goes_on_is_left_alone(site, monkeypatch):
    killed_in(site, monkeypatch, State.INSTALLED)
    other = site.machines["worker2"]
    other.state, other.system, other.holds = Power.ON, "old", "old"
    mine, site.machines["worker1"] = site.machines["worker1"], other
    found = site.run(nodes=site.nodes[:1])["worker1"]
    assert "belongs to another machine than run" in found.reason
    assert (found.state, found.refused) == (State.INSTALLED, True)
    assert orders(other) == []
    site.machines["worker1"] = mine
    assert site.run(nodes=site.nodes[:1])["worker1"].state is State.READY


def test_a_machine_that_was_replaced_is_begun_anew_by_its_serial_number(site, monkeypatch):
    killed_in(site, monkeypatch, State.INSTALLED)
    new = site.machines["worker1"]
    new.cut()
    new.serial = new.dmi_serial = "SN-9"
    new.holds, new.signatures = None, []
    site.nodes[0] = site.nodes[0].model_copy(update={"serial": "SN-9"})
    assert site.run(nodes=site.nodes[:1], worker1="SN-8")["worker1"].refused
    assert read("test", "worker1").state is State.INSTALLED
    assert site.run(nodes=site.nodes[:1], worker1="SN-9")["worker1"].state is State.READY
    assert read("test", "worker1").serial == "SN-9"


def test_after_ctrl_c_no_machine_is_switched_on(site):
    asked = threading.Event()
    for machine in site.machines.values():
        real = machine.secure_boot

        def slow(real=real):
            asked.set()
            time.sleep(0.3)
            return real()

        machine.secure_boot = slow

    def interrupt():
        if asked.is_set():
            raise KeyboardInterrupt

    made = site.installation()
    made.prepare(lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        made.run(interrupt)
    assert not [one for machine in site.machines.values() for one in machine.calls if one == "set_power on"]
    assert all(one.state is Power.OFF for one in site.machines.values())


def test_an_order_to_switch_on_whose_answer_is_lost_may_have_been_carried_out(site):
    machine = site.machines["worker1"]
    real = machine.set_power

    def lost(action):
        real(action)
        raise NoAnswer("The BMC does not answer.")

    machine.set_power = lost
    assert site.run(nodes=site.nodes[:1])["worker1"].state is State.READY
    assert machine.calls.count("set_power on") == 2, "the agent, and the installed system"


def test_a_bmc_that_says_off_while_the_agent_works_is_not_believed(site, monkeypatch):
    monkeypatch.setattr(operator, "TEMPO", replace(operator.TEMPO, power_lost=1.0))
    machine, says_off = site.machines["worker1"], threading.Event()
    real = machine.power
    machine.power = lambda: Power.OFF if says_off.is_set() else real()

    def work(agent):
        agent.say_hello()
        answer = agent.decision()
        says_off.set()
        for percent in range(100):
            agent.head.post("/v1/progress", {"phase": "image", "percent": percent})
            time.sleep(0.015)
        says_off.clear()
        agent.write(answer["install"])
        agent.done(answer["install"])

    machine.agent = work
    assert site.run(nodes=site.nodes[:1])["worker1"].state is State.READY


@pytest.mark.parametrize("mode", ["discover", "install"])
def test_an_erasure_is_left_to_the_command_that_began_it(site, monkeypatch, mode):
    machine = site.machines["worker1"]
    wait = Machine._pause

    def pause(one):
        if one.journal.record.state is State.HELD:
            raise Interrupted("killed")
        wait(one)

    with monkeypatch.context() as patched:
        patched.setattr(Machine, "_pause", pause)
        site.run(MODE, nodes=site.nodes[:1], worker1="SN-1")
    time.sleep(0.3)  # calls that the killed run had taken are answered
    confirm(site.cluster, site.nodes[0], "SN-1", MODE)
    found = site.run(mode, nodes=site.nodes[:1])["worker1"]
    assert found.refused
    assert read("test", "worker1").state is State.HELD
    assert machine.state is Power.ON


def test_held_nodes_let_others_have_their_turn(sites):
    site = sites(4, at_once=1)
    for name in ("worker1", "worker2"):
        site.machines[name].signatures = [EXT4]

    def meanwhile():
        ready = [name for name in ("worker3", "worker4") if read("test", name).state is State.READY]
        held = [one for one in site.nodes[:2] if read("test", one.name).state is State.HELD]
        if len(ready) == len(held) == 2:
            for node in held:
                confirm(site.cluster, node, f"DISK-{node.name[-1]}")

    made = site.installation()
    made.prepare(lambda _: None)
    assert {one.state for one in made.run(meanwhile)} == {State.READY}


def test_a_node_that_was_held_comes_before_those_that_have_not_begun():
    nodes = [make_worker(number) for number in (1, 2, 3)]
    turns, begun = Turns(make_site(*nodes), 1, 100), threading.Event()
    with turns.turn(nodes[0]):
        turns.give(nodes[0])
        with turns.turn(nodes[1]):
            assert not turns.take_again(nodes[0])

            def third():
                with turns.turn(nodes[2]):
                    begun.set()

            waiting = threading.Thread(target=third)
            waiting.start()
        assert not begun.wait(0.1)
        assert turns.take_again(nodes[0])
        assert turns.take_again(nodes[0]), "it has it"
    assert begun.wait(5)
    waiting.join(5)


def test_a_clock_that_is_set_ends_nothing(site, monkeypatch):
    machine = site.machines["worker1"]
    real = time.time

    def work(agent):
        monkeypatch.setattr(time, "time", lambda: real() + 7200)
        agent.install()

    machine.agent = work
    assert site.run(nodes=site.nodes[:1])["worker1"].state is State.READY
    assert abs(steady.now() - real()) < 5


def test_half_a_line_is_taken_back(site, monkeypatch):
    journal = records.Journal("test", "worker1")
    journal.move(State.PRECHECKED, run="r1", mode="install")
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda handle, data: write(handle, data[:9]))
        with pytest.raises(OSError, match="full"):
            journal.move(State.ARMED, token="t")
    found = read("test", "worker1")
    assert (found.state, found.was_ready) == (State.PRECHECKED, False)
    journal.move(State.ARMED, token="t")
    assert read("test", "worker1").token == "t"


def test_a_hold_begins_anew_with_each_run(site, monkeypatch):
    """No one can agree while no run is alive."""
    site.machines["worker1"].signatures = [EXT4]
    killed_in(site, monkeypatch, State.HELD)
    real = steady.now
    monkeypatch.setattr(steady, "now", lambda: real() + 3600)
    done = threading.Event()

    def agree():
        if not done.is_set():
            done.set()
            confirm(site.cluster, site.nodes[0], "DISK-1")

    made = site.installation(nodes=site.nodes[:1])
    made.prepare(lambda _: None)
    (found,) = made.run(agree)
    assert found.state is State.READY, found.reason
