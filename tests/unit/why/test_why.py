"""Why a node is as it is: who drained it, each part known and unknown, and the next step."""

from __future__ import annotations

import json

import pytest

from rackwright.cli import run as cli
from rackwright.command import CommandResult
from rackwright.engine.journal_lines import Run
from rackwright.errors import ConnectionFailed, RackwrightError
from rackwright.health.declare import expected_of
from rackwright.health.guard import places
from rackwright.model.types import NodeRole, Platform
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import NodePlan, PlannedOperation
from rackwright.why import ask, parts
from rackwright.why.ask import why
from rackwright.why.parts import drain_of, scheduler_part
from rackwright.workload.slurm.control import Slurm
from rackwright.workload.slurm.output import node_state
from rackwright.workload.states import HEALTH_PREFIX
from tests.factories import RunsSlurm, make_cluster, make_node
from tests.unit.health.bases import SKUS
from tests.unit.health.fake_node import document
from tests.unit.health.faults import drop_gpu
from tests.unit.health.healthy import healthy

OURS = "Reason=rackwright-health: gpu-count FAIL reboot: nvidia-smi lists 7 of 8 [root@2026-11-21T20:00:00]"
HUMAN = "Reason=a fan [ada@2026-11-21T20:00:00]"
LAST = {
    "version": 1, "policy": {"clean_passes": 3}, "disabled": {"gpu-throttle": "on this node: hot aisle"},
    "memory": {"alert": None, "drained": True, "clean": 1, "unknown": 0, "reboots": [], "excused_until": 0},
}  # fmt: skip


OPTIONS = {"slurm": RunsSlurm()}
CLUSTER = make_cluster(
    make_node("head1", 10, NodeRole.HEAD, options=OPTIONS),
    make_node(
        "gpu1", 11, NodeRole.WORKER, sku=SKUS["dgx-h100"].sku, platform=Platform.BARE_METAL, options=OPTIONS
    ),
)
NODE = CLUSTER.by_name["gpu1"]
HEALTHY = healthy(NODE.sku, expected_of(CLUSTER, NODE))


@pytest.fixture
def cluster():
    return CLUSTER


class Shell:
    """A head with Slurm and a node with a probe."""

    def __init__(self, reason="", state="IDLE+DRAIN", mutate=None, dead=(), last=LAST):
        self.reason, self.state, self.dead, self.last = reason, state, dead, last
        self.node = HEALTHY.with_fault(mutate or (lambda node: None))

    def run(self, node, command, *, stdin=None, timeout):
        if node in self.dead:
            raise ConnectionFailed(f"Cannot connect to {node}.")
        if "scontrol" in command:
            return CommandResult(command, 0, f"NodeName=gpu1 State={self.state} {self.reason}\n", "")
        if "squeue" in command:
            row = command.partition("--format='")[2].rstrip("'")
            for field, value in (("%i", "7"), ("%u", "ada"), ("%j", "train")):
                row = row.replace(field, value)
            return CommandResult(command, 0, row + "\n", "")
        if places.LAST in command:
            return CommandResult(command, 0, json.dumps(self.last) if self.last else "", "")
        return CommandResult(command, 0, json.dumps({**document(self.node), "node": node}), "")


def no_plan(cluster, node):
    return NodePlan(node)


@pytest.fixture(autouse=True)
def no_journals(monkeypatch):
    monkeypatch.setattr(ask, "runs", list)


def explain(cluster, tmp_path, shell, planner=no_plan):
    return why(cluster, cluster.by_name["gpu1"], tmp_path / "c.yaml", shell=shell, planner=planner)


def lines(found, name):
    return next(part.lines for part in found.parts if part.name == name)


@pytest.mark.parametrize(
    ("reason", "by", "state", "who"),
    [
        ("", "", "IDLE", None),
        (HEALTH_PREFIX + "gpu-count FAIL reboot: 7", "root@x", "IDLE+DRAIN", "health"),
        ("rackwright: 20261121T120000Z-abc", "root@x", "MIXED+DRAIN", "rollout"),
        ("a fan", "ada@x", "IDLE+DRAIN", "person"),
        ("looking at it", "root@x", "IDLE+DRAIN", "person"),
        ("Prolog error", "root@x", "IDLE+DRAIN", "slurm"),
        ("Not responding", "slurm@x", "DOWN+NOT_RESPONDING", "slurm"),
        ("Low RealMemory (reported:1 < 100.00% of configured:2)", "slurm@x", "IDLE+DRAIN", "slurm"),
    ],
)
def test_who_drained_it(reason, by, state, who):
    manager = Slurm(CLUSTER, Shell())
    found = node_state(state, reason, by)
    drain = drain_of(found, "gpu1", manager)
    assert scheduler_part(found, drain, manager, ()).data["drained_by"] == who


def test_a_node_that_drained_itself(cluster, tmp_path):
    found = explain(cluster, tmp_path, Shell(OURS, mutate=drop_gpu(3)))
    assert [part.name for part in found.parts] == ["scheduler", "health", "declaration", "changes", "kernel"]
    assert "by its own health check" in lines(found, "scheduler")[0]
    assert "gpu-count FAIL: nvidia-smi lists 7 of 8 declared GPUs" in lines(found, "health")
    assert "clean passes in a row: 1 of 3" in lines(found, "health")
    assert "switched off on this node: hot aisle: gpu-throttle" in lines(found, "health")
    assert found.next_step.startswith("reboot: Reboot once")
    assert found.next_step.endswith("The node then resumes by itself after 3 clean passes.")
    assert not found.unknown


def test_a_node_that_observes_says_what_it_would_do(cluster, tmp_path):
    episode = {
        "since": 1_795_000_000.0,
        "passes": 4,
        "reason": HEALTH_PREFIX + "gpu-count FAIL reboot: 7 of 8",
    }
    policy = {"clean_passes": 3, "act": False}
    last = {**LAST, "policy": policy, "would_drain": episode, "memory": {**LAST["memory"], "drained": False}}
    found = lines(explain(cluster, tmp_path, Shell(state="IDLE", last=last)), "health")
    assert "it only observes (health.act: false): it drains, reboots and refuses nothing" in found
    assert (
        "it would have been drained since 2026-11-18 11:06:40, in 4 passes: gpu-count FAIL reboot: 7 of 8"
        in found
    )


@pytest.mark.parametrize(
    ("shell", "step"),
    [
        (Shell(OURS), "wait: no check fails now, and the node resumes by itself after 3 clean passes"),
        (Shell(HUMAN), "ask the person who drained it, then `scontrol update NodeName=gpu1 State=RESUME`"),
        (
            Shell("Reason=rackwright: R1 [root@x]"),
            "`rackwright runs R1`; if that run is over, `rackwright resume R1`",
        ),
        (Shell("Reason=Not responding [slurm@x]", "DOWN*"), "check slurmd"),
        (Shell(state="IDLE"), "nothing: it is in service and as declared"),
        (Shell(dead=("gpu1",)), "make the node reachable first: Cannot connect to gpu1."),
        (Shell(dead=("head1",)), "nothing known needs action"),
        (Shell(HUMAN, mutate=drop_gpu(3)), "reboot: Reboot once"),
    ],
)
def test_the_next_step(cluster, tmp_path, shell, step):
    assert explain(cluster, tmp_path, shell).next_step.startswith(step)


def test_a_drain_that_waits_for_jobs_names_them(cluster, tmp_path):
    found = explain(cluster, tmp_path, Shell(HUMAN, state="MIXED+DRAIN"))
    assert lines(found, "scheduler")[1] == "jobs still running there: 7 (ada, train)"


def test_without_a_workload_manager_nothing_drained_the_node(tmp_path):
    bare = make_cluster(*(node.model_copy(update={"options": {}}) for node in CLUSTER.nodes))
    found = explain(bare, tmp_path, Shell())
    assert lines(found, "scheduler") == ("no workload manager is declared",)
    assert found.next_step == "nothing: it is in service and as declared"


def test_each_part_that_is_not_known_says_why(cluster, tmp_path):
    def broken(cluster, node):
        raise RackwrightError("Another run holds the lock.")

    found = explain(cluster, tmp_path, Shell(dead=("head1", "gpu1")), broken)
    unknown = {part.name: part.lines for part in found.parts if part.unknown}
    assert unknown == {
        "scheduler": ("Cannot connect to head1.",),
        "health": ("Cannot connect to gpu1.",),
        "declaration": ("the plan failed: Another run holds the lock.",),
        "kernel": ("Cannot connect to gpu1.",),
    }
    assert found.unknown
    assert found.to_json()["parts"][0]["unknown"] is True


def test_what_differs_from_the_declaration(cluster, tmp_path):
    change = Change("file", "/etc/motd", "file 644 root:root", "file 600 root:root")
    plan = NodePlan("gpu1", (PlannedOperation("base", "Write /etc/motd", (change,), ()),))
    found = explain(cluster, tmp_path, Shell(state="IDLE"), lambda cluster, node: plan)
    assert lines(found, "declaration") == ("base: file /etc/motd: file 644 root:root -> file 600 root:root",)
    assert "--limit gpu1" in found.next_step
    assert parts.plan_part(NodePlan("gpu1", error="no ssh")).unknown


def test_what_rackwright_changed_last():
    def run(name, node, cluster="c", at=1_795_000_000.0):
        events = [
            {
                "event": "finish",
                "node": node,
                "role": "base",
                "name": "Write it",
                "outcome": "changed",
                "at": at,
            }
        ]
        return Run(
            name, begin={"cluster": cluster, "user": "ada"}, end={"outcome": "finished"}, events=events
        )

    told = [run("R1", "gpu1"), run("R2", "gpu2"), run("R3", "gpu1"), run("R4", "gpu1", "other")]
    found = parts.changes_part("c", "gpu1", told)
    assert [one["run"] for one in found.data["runs"]] == ["R3", "R1"]
    assert found.lines[0] == "2026-11-18 11:06:40 run R3 by ada, finished, 1 changes: base: Write it"
    assert parts.changes_part("c", "gpu9", told).lines == ("no run from this control node has changed it",)


def test_what_the_kernel_said(cluster, tmp_path):
    shell = Shell(
        state="IDLE", mutate=lambda node: node.log("NVRM: Xid (PCI:0000:1b:00): 31, pid=1, MMU fault")
    )
    assert lines(explain(cluster, tmp_path, shell), "kernel")[0].endswith("31, pid=1, MMU fault")
    [none] = lines(explain(cluster, tmp_path, Shell(state="IDLE")), "kernel")
    assert none.startswith("no error in 3 lines since ")


def test_a_node_that_is_not_declared_is_refused(capsys):
    assert cli(["why", "inventory/lab.yaml", "worker9"]) == 1
    assert "declares no node worker9" in capsys.readouterr().err
