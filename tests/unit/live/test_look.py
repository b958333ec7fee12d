"""All sources at once: what each says, what is silent, what is stale, what is damaged, and what is not declared."""

from __future__ import annotations

import json
import threading
import time
from typing import ClassVar

import pytest

from rackwright.command import CommandResult
from rackwright.drift import paths
from rackwright.drift.declaration import Declaration, write_declaration
from rackwright.drift.report import remember
from rackwright.drift.states import Known, State, history_text
from rackwright.errors import ConnectionFailed, RackwrightError
from rackwright.health.guard import places
from rackwright.live import look as module
from rackwright.live.alerts import Alerts, firing
from rackwright.live.facts import Absent, Unknown
from rackwright.live.findings import FiringAlert, LastDrift, LastHealth, Level, Source
from rackwright.live.look import look
from rackwright.model.interfaces import ChecksNodeHealth
from rackwright.model.options import RoleOptions
from rackwright.model.types import NodeRole
from rackwright.plan.node_plan import NodePlan, PlanResult
from rackwright.prometheus.query import Result, Series
from tests.factories import RunsSlurm, make_cluster, make_node

NOW = 1_800_000_000
LAST = {
    "version": 1, "at": NOW - 60.0, "memory": {"alert": None, "drained": False, "clean": 3},
    "policy": {"clean_passes": 3, "act": True}, "disabled": {},
    "results": [
        {"node": "w1", "check": "gpu-count", "claim": "", "area": "gpu", "status": "PASS", "evidence": "8", "action": "none"},
        {"node": "w1", "check": "disk", "claim": "", "area": "", "status": "FAIL", "evidence": "worn", "action": "none"},
    ],
}  # fmt: skip


class Health(RoleOptions, ChecksNodeHealth):
    """Options of a role that puts a health check on nodes."""

    health_program: ClassVar[str] = places.PROGRAM


OPTIONS = {"slurm": RunsSlurm(), "health": Health()}


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options=OPTIONS),
        make_node("w1", 11, options=OPTIONS),
        make_node("w2", 12, options=OPTIONS),
        path=tmp_path / "c.yaml",
    )


class Shell:
    """A head with Slurm, nodes with a health check, and drift files."""

    def __init__(
        self, sinfo="all|w1|idle|root|x|none\nall|w2|mixed|root|x|none\n", last=LAST, dead=(), files=None
    ):
        self.sinfo, self.last, self.dead, self.files = sinfo, last, dead, files or {}
        self.hold = threading.Event()
        self.asked = []

    def run(self, node, command, *, stdin=None, timeout):
        self.asked.append((node, command))
        if node in self.dead:
            raise ConnectionFailed(f"Cannot connect to {node}: it is off.")
        if command.startswith("sinfo"):
            if isinstance(self.sinfo, Exception):
                raise self.sinfo
            if self.sinfo is None:
                self.hold.wait(10)
            return CommandResult(command, 0, self.sinfo or "", "")
        if places.LAST in command:
            text = self.last if isinstance(self.last, str) else f"{NOW}\n{NOW}\n{json.dumps(self.last)}"
            return CommandResult(command, 0, text, "")
        for path, text in self.files.items():
            if path in command:
                return CommandResult(command, 0, text, "")
        return CommandResult(command, 1, "", "No such file or directory")


def test_every_source_of_a_working_cluster(cluster):
    live = look(cluster, shell=Shell())
    w1, w2 = live.nodes["w1"], live.nodes["w2"]
    assert list(live.nodes) == ["head1", "w1", "w2"]
    assert w1.scheduler.words == {"IDLE"}
    assert w2.scheduler.busy
    assert w1.health.checks == 2
    assert w1.health.age_seconds == 60
    assert [one.check for one in w1.health.failures] == ["disk"]
    assert w1.level is Level.WARNING
    assert live.nodes["head1"].scheduler == Absent("it runs no jobs")
    assert live.not_asked.keys() == {Source.DRIFT, Source.ALERTS}


def test_a_node_out_of_reach_costs_its_own_facts_alone(cluster):
    live = look(cluster, shell=Shell(dead=("w2",)))
    assert live.nodes["w2"].health == Unknown("Cannot connect to w2: it is off.")
    assert live.nodes["w2"].level is Level.UNKNOWN
    assert isinstance(live.nodes["w1"].health, LastHealth)


def test_a_silent_scheduler_is_unknown_in_time_and_the_rest_is_known(cluster):
    shell = Shell(sinfo=None)
    began = time.monotonic()
    live = look(cluster, shell=shell, seconds=0.5)
    shell.hold.set()
    assert time.monotonic() - began < 8
    assert live.nodes["w1"].scheduler == Unknown("no answer within 0.5 s")
    assert isinstance(live.nodes["w1"].health, LastHealth)


@pytest.mark.parametrize(
    ("sinfo", "why"),
    [
        ("nonsense\n", "`sinfo` printed something else: nonsense"),
        (ValueError("odd"), "it could not be asked: ValueError: odd"),
        ("all|w1|idle|root|x|none\n", "Slurm does not know it"),
    ],
)
def test_a_scheduler_that_does_not_say(cluster, sinfo, why):
    assert look(cluster, shell=Shell(sinfo)).nodes["w2"].scheduler == Unknown(why)


@pytest.mark.parametrize(
    ("last", "why"),
    [
        ("garbage", "answered something else"),
        (f"{NOW}\n{NOW}\nnot json", "is not used: it is not valid JSON"),
        ({**LAST, "version": 2}, "its version is not 1"),
        ({**LAST, "at": NOW - 7300.0}, "its health check last ran 2 h ago"),
        ({**LAST, "results": [{"check": "x"}]}, "results.0.status: Field required"),
        ({**LAST, "results": [{**LAST["results"][0], "status": "FINE"}]}, "results.0.status"),
    ],
)
def test_a_health_check_that_says_nothing_usable(cluster, last, why):
    fact = look(cluster, shell=Shell(last=last)).nodes["w1"].health
    assert isinstance(fact, Unknown)
    assert why in fact.reason


def test_sources_that_are_left_out_are_not_asked(cluster):
    shell = Shell()
    live = look(cluster, shell=shell, sources=[Source.SCHEDULER])
    assert [node for node, _ in shell.asked] == ["head1"]
    assert live.nodes["w1"].health == Absent("not asked")
    assert live.nodes["w1"].level is Level.GOOD


def compared(cluster, ago=60.0, sha256=None):
    nodes = {"head1": NodePlan("head1"), "w1": NodePlan("w1", error="no answer", unreachable=True)}
    plan = PlanResult(cluster.name, str(cluster.path), sha256 or cluster.sha256, nodes)
    assert remember(plan, time.time() - ago) is None


def drift(cluster, shell=None):
    live = look(cluster, shell=shell or Shell(), sources=[Source.DRIFT])
    return {name: node.drift for name, node in live.nodes.items()}


def test_drift_found_by_hand(cluster):
    compared(cluster)
    found = drift(cluster)
    assert found["head1"].state is State.IN_SYNC
    assert not found["head1"].scheduled
    assert found["w1"].state is State.UNREACHABLE
    assert found["w2"] == Unknown("the last `rackwright drift` did not compare it")


@pytest.mark.parametrize(
    ("ago", "sha256", "why"),
    [(200_000.0, None, "last compared 2 d ago"), (60.0, "1" * 64, "the cluster file has changed since")],
)
def test_drift_found_by_hand_does_not_count_for_ever(cluster, ago, sha256, why):
    compared(cluster, ago, sha256)
    assert all(isinstance(one, Unknown) and why in one.reason for one in drift(cluster).values())


def test_drift_of_the_scheduled_check_on_the_head(cluster):
    write_declaration(cluster.path, Declaration(every_seconds=1800, on="head"))
    path = f"{paths.state_of(cluster.name)}/state.json"
    history = history_text({"head1": Known(State.IN_SYNC, 1.0), "w1": Known(State.DRIFTED, 1.0)})
    found = drift(cluster, Shell(files={path: f"{NOW}\n{NOW - 100}\n{history}"}))
    assert found["w1"] == LastDrift(State.DRIFTED, NOW - 100.0, 100.0, scheduled=True)
    assert found["w2"] == Unknown("the scheduled drift check does not know it yet")
    for text, why in (
        (f"{NOW}\n{NOW - 86400}\n{history}", "last ran 24 h ago"),
        (f"{NOW}\n{NOW}\n[]", "is not used"),
        ("", "answered something else"),
    ):
        found = drift(cluster, Shell(files={path: text}))
        assert all(isinstance(one, Unknown) and why in one.reason for one in found.values())
    assert drift(cluster, Shell(dead=("head1",)))["w1"] == Unknown("Cannot connect to head1: it is off.")


def test_drift_that_nodes_check_themselves(cluster):
    write_declaration(cluster.path, Declaration(every_seconds=1800, mode="pull"))
    metrics = (
        'rackwright_drift_drifted{cluster="test",node="w1"} 1\nrackwright_drift_unknown{cluster="test",node="w1"} 0\n'
        f'rackwright_drift_last_check_timestamp_seconds{{cluster="test",node="w1"}} {NOW - 90}.000\n'
    )
    shell = Shell(files={paths.NODE_METRICS: f"{NOW}\n{NOW}\n{metrics}"}, dead=("w2",))
    found = drift(cluster, shell)
    assert found["w1"] == LastDrift(State.DRIFTED, NOW - 90.0, 90.0, scheduled=True)
    assert found["w2"] == Unknown("Cannot connect to w2: it is off.")
    late = Shell(files={paths.NODE_METRICS: f"{NOW + 90000}\n{NOW}\n{metrics}"})
    assert "last ran 25 h ago" in drift(cluster, late)["w1"].reason


def answers(*fires, monitored=("head1", "w1", "w2"), error=None):
    def ask(queries):
        series = tuple(Series({"alertstate": "firing", **labels}, ((1.0, 1.0),)) for labels in fires)
        up = tuple(Series({"node": name}, ((1.0, 1.0),)) for name in monitored)
        return Result(queries[0], series, error), Result(queries[1], up)

    return ask


def test_alerts_by_node_and_those_of_the_cluster(cluster):
    found = firing(
        cluster,
        answers(
            {"alertname": "GpuHot", "severity": "critical", "node": "w1", "gpu": "3"},
            {"alertname": "RackDown", "severity": "critical", "rack": "r1"},
            {"alertname": "Watchdog", "severity": "none"},
            monitored=("head1", "w1"),
        ),
    )
    assert found.of["w1"] == (FiringAlert("GpuHot", "critical", {"node": "w1", "gpu": "3"}),)
    assert found.of["head1"] == ()
    assert found.of["w2"] == Unknown("Prometheus has no series of it: it is not monitored")
    assert [one.name for one in found.others] == ["RackDown"]


def test_alerts_of_a_prometheus_that_does_not_answer(cluster, monkeypatch):
    assert set(firing(cluster, answers(error="it is overloaded")).of.values()) == {
        Unknown("it is overloaded")
    }

    def refused(self) -> Alerts:
        raise RackwrightError("Prometheus cannot be asked: no route.")

    monkeypatch.setattr(module._Asked, "alerts", refused)
    live = look(cluster, shell=Shell(), sources=[Source.ALERTS])
    assert {node.alerts for node in live.nodes.values()} == {Unknown("Prometheus cannot be asked: no route.")}


def test_a_damaged_drift_declaration_is_unknown_too(cluster):
    cluster.path.with_suffix(".drift.json").write_text("{")
    assert "is not a valid drift declaration" in drift(cluster)["w1"].reason
