"""The level of a node, from every source; what is not known is never good."""

from __future__ import annotations

import pytest

from rackwright.drift.states import State
from rackwright.live.facts import Absent, Unknown
from rackwright.live.findings import Failure, FiringAlert, LastDrift, LastHealth, Level, Source
from rackwright.live.node import Live, LiveNode
from rackwright.workload.slurm.output import node_state

IDLE, MIXED = node_state("IDLE"), node_state("MIXED")
CLEAN = LastHealth(at=1000.0, age_seconds=60.0, checks=80)
SYNC = LastDrift(State.IN_SYNC, 1000.0, 60.0, scheduled=True)
NONE = Absent("none is declared")


def node(scheduler=IDLE, health=CLEAN, drift=SYNC, alerts=()):
    return LiveNode("gpu1", scheduler, health, drift, alerts)


def failed(status="FAIL", action="drain"):
    return LastHealth(1000.0, 60.0, 80, (Failure("gpu-count", status, action, "7 of 8"),))


@pytest.mark.parametrize(
    ("found", "level", "says"),
    [
        (node(), Level.GOOD, None),
        (node(MIXED), Level.BUSY, None),
        (node(Absent("it runs no jobs"), NONE, NONE), Level.GOOD, None),
        (node(node_state("DOWN*", "Not responding", "slurm@x")), Level.DOWN, "DOWN: Not responding [slurm@x]"),
        (node(node_state("IDLE+DRAIN", "a fan", "ada@x")), Level.DRAINED, "DRAIN+IDLE: a fan [ada@x]"),
        (node(node_state("UNKNOWN")), Level.UNKNOWN, "UNKNOWN: no reason given"),
        (node(Unknown("no answer within 30 s")), Level.UNKNOWN, "no answer within 30 s"),
        (node(MIXED, failed()), Level.FAILING, "gpu-count FAIL: 7 of 8"),
        (node(MIXED, failed(action="none")), Level.WARNING, "gpu-count FAIL: 7 of 8"),
        (node(MIXED, failed("UNKNOWN")), Level.UNKNOWN, "gpu-count UNKNOWN: 7 of 8"),
        (node(health=LastHealth(1, 1, 80, (), "too many are drained")), Level.FAILING,
         "asks for a person: too many are drained"),
        (node(health=Unknown("not reached")), Level.UNKNOWN, "not reached"),
        (node(drift=LastDrift(State.DRIFTED, 1, 7300, scheduled=False)), Level.WARNING,
         "drifted 2 h ago, by `rackwright drift`"),
        (node(drift=LastDrift(State.UNREACHABLE, 1, 90, scheduled=True)), Level.UNKNOWN,
         "unreachable 90 s ago, by the scheduled check"),
        (node(drift=LastDrift(State.UNKNOWN, 1, 90, scheduled=True)), Level.UNKNOWN,
         "unknown 90 s ago, by the scheduled check"),
        (node(alerts=(FiringAlert("GpuHot", "critical", {"node": "gpu1", "gpu": "3"}),)), Level.FAILING,
         "GpuHot (critical; gpu 3)"),
        (node(alerts=(FiringAlert("GpuHot", "warning", {"node": "gpu1"}),)), Level.WARNING, "GpuHot (warning)"),
        (node(alerts=(FiringAlert("Told", "info", {"node": "gpu1"}),)), Level.GOOD, None),
        (node(NONE, NONE, NONE, NONE), Level.UNKNOWN, "the cluster declares nothing that monitors it"),
    ],
)  # fmt: skip
def test_level_and_reason(found, level, says):
    assert found.level is level
    assert [one.text for one in found.reasons] == ([] if says is None else [says])


def test_the_worst_reason_comes_first_and_none_is_lost():
    found = node(
        node_state("IDLE+DRAIN", "a fan", "ada@x"),
        Unknown("not reached"),
        LastDrift(State.DRIFTED, 1, 60, scheduled=True),
        (FiringAlert("NodeDown", "critical", {"node": "gpu1"}),),
    )
    assert [one.level for one in found.reasons] == [
        *(Level.FAILING, Level.DRAINED, Level.UNKNOWN, Level.WARNING),
    ]
    assert {one.source for one in found.reasons} == set(Source)


@pytest.mark.parametrize("silent", list(Source))
def test_a_node_of_which_one_fact_is_not_known_is_not_good(silent):
    facts = {
        "scheduler": MIXED,
        "health": CLEAN,
        "drift": SYNC,
        "alerts": (),
        silent.value: Unknown("no answer"),
    }
    assert LiveNode("gpu1", **facts).level is Level.UNKNOWN


def test_what_nodes_and_users_say_is_one_printable_line():
    found = node(node_state("IDLE+DRAIN", "a\x1b[2Jfan\n", "ada@x"), Unknown("no\x07 answer"))
    assert [one.text for one in found.reasons] == ["DRAIN+IDLE: a\\x1b[2Jfan\\x0a [ada@x]", "no\\x07 answer"]


def test_the_cluster_counts_every_level_and_names_sources_that_say_nothing():
    nodes = {"a": node(drift=NONE), "b": node(MIXED, drift=NONE)}
    live = Live("demo", 1.0, 2.0, nodes)
    assert live.counts[Level.GOOD] == live.counts[Level.BUSY] == 1
    assert len(live.counts) == len(Level)
    assert live.not_asked == {Source.DRIFT: "none is declared"}
    told = live.to_json()["nodes"][0]
    assert told["drift"] == {"absent": "none is declared"}
    assert told["health"]["value"]["checks"] == 80
