"""Draining: only what is ours, and never a guess about a state."""

from __future__ import annotations

import pytest

from rackwright.command import CommandResult
from rackwright.workload.slurm.drain import Drainer, SlurmNode, parse_sinfo
from tests.factories import make_cluster

RECORDED = """\
worker1|idle|none
worker1|idle|none
worker2|mixed*|none
worker3|draining|rackwright: run1
worker4|drained|bad DIMM, ticket 12
worker5|down*|Not responding
"""


def test_sinfo_is_read():
    nodes = parse_sinfo(RECORDED)
    assert nodes["worker2"] == SlurmNode("mixed", "none")
    assert [name for name, node in nodes.items() if node.out] == ["worker3", "worker4", "worker5"]
    assert [name for name, node in nodes.items() if node.empty] == ["worker1", "worker4", "worker5"]


@pytest.mark.parametrize("text", ["", "sinfo: error: x", "\n\n", "|idle|"])
def test_what_is_no_table_names_no_node(text):
    assert parse_sinfo(text) == {}


class Head:
    """Answers like a controller; `states` is changed by scontrol."""

    def __init__(self, states, *, rc=0, frees_after=0):
        self.states, self.rc, self.frees_after = states, rc, frees_after
        self.commands = []

    def __call__(self, command):
        self.commands.append(command)
        if command.startswith("sinfo"):
            if self.frees_after > 0:
                self.frees_after -= 1
            elif self.frees_after == 0:
                self.states = {
                    n: ("drained" if s == "draining" else s, r) for n, (s, r) in self.states.items()
                }
            text = "\n".join(f"{name}|{state}|{reason}" for name, (state, reason) in self.states.items())
            return CommandResult(command, self.rc, text if self.rc == 0 else "", "")
        for name in self.states:
            if f"'{name}'" in command and "DRAIN" in command:
                self.states[name] = ("draining", "rackwright: run7")
            elif f"'{name}'" in command:
                self.states[name] = ("idle", "none")
        return CommandResult(command, 0, "", "")


@pytest.fixture
def drainer(monkeypatch):
    """A drainer whose head is a Head."""

    def make(head):
        drainer = Drainer(make_cluster(), "run7")
        monkeypatch.setattr(drainer, "_on_head", head)
        monkeypatch.setattr("rackwright.workload.slurm.drain._POLL_SECONDS", 0.01)
        return drainer

    return make


def _workers(*names):
    cluster = make_cluster()
    return [cluster.by_name[name] for name in names]


def test_a_node_is_drained_waited_for_and_resumed(drainer):
    head = Head({"worker1": ("allocated", "none"), "worker2": ("idle", "none")}, frees_after=3)
    one = drainer(head)
    assert one.drain(_workers("worker1"), 5) == {}
    assert head.states["worker1"] == ("drained", "rackwright: run7")
    one.resume(["worker1"])
    assert head.states == {"worker1": ("idle", "none"), "worker2": ("idle", "none")}


def test_a_drain_made_by_a_human_stays(drainer):
    head = Head({"worker1": ("drained", "bad DIMM")})
    one = drainer(head)
    assert one.drain(_workers("worker1"), 1) == {}
    one.resume(["worker1"])
    assert head.states == {"worker1": ("drained", "bad DIMM")}
    assert not [command for command in head.commands if command.startswith("scontrol")]


def test_jobs_that_do_not_end_keep_their_node(drainer):
    head = Head({"worker1": ("allocated", "none")}, frees_after=-1)
    refused = drainer(head).drain(_workers("worker1"), 0.05)
    assert refused == {"worker1": "its jobs did not end within 0.05 s"}
    assert head.states["worker1"] == ("idle", "none")  # put back: it was our drain


def test_without_a_controller_there_is_nothing_to_drain(drainer):
    head = Head({"worker1": ("idle", "none")}, rc=127)
    assert drainer(head).drain(_workers("worker1"), 1) == {}
    assert not [command for command in head.commands if command.startswith("scontrol")]
