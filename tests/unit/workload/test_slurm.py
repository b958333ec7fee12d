"""Slurm beyond the contract: what its tools print, Gres names, and when its controller is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.errors import WorkloadError
from rackwright.model.types import NodeRole
from rackwright.workload.lookup import declared_on, manager_of, runs_jobs
from rackwright.workload.protocol import GpuRequest, JobStep, gpus_of
from rackwright.workload.slurm.control import Slurm
from rackwright.workload.slurm.gres import gres
from rackwright.workload.slurm.output import (
    node_state,
    parse_config,
    parse_hostlist,
    parse_nodes,
    parse_rows,
)
from rackwright.workload.states import NoAnswer
from tests.factories import RunsSlurm, make_cluster, make_gpu_sku, make_node
from tests.unit.workload.fake_slurm import FakeSlurm

RECORDED = Path(__file__).parents[1] / "roles" / "recorded" / "slurm"
ROWS = """\
main|worker1|idle|Unknown|Unknown|none
long|worker1|idle|Unknown|Unknown|none
main|worker2|mixed*|Unknown|Unknown|none
main|worker3|draining|root|2026-11-22T10:00:00|rackwright: run1
main|worker4|drained|ada|2026-11-22T10:00:00|bad DIMM, ticket 12 | row 3
main|worker5|down*|slurm|2026-11-22T10:00:00|Not responding
"""
SKU = make_gpu_sku()
OPTIONS = {"slurm": RunsSlurm()}
CLUSTER = make_cluster(
    make_node("head1", 10, NodeRole.HEAD, options=OPTIONS),
    make_node("gpu1", 11, sku=SKU, options=OPTIONS),
    make_node("mig1", 12, sku=SKU, options=OPTIONS, mig={"1g.10gb": 7}),
    make_node("mig2", 13, sku=SKU, options=OPTIONS, mig={"1g.10gb": 4, "3g.40gb": 1}),
    make_node("cpu1", 14, options=OPTIONS),
)


def test_sinfo_is_read():
    nodes = {row.node: row.node_state for row in parse_rows(ROWS)}
    assert (nodes["worker2"].words, nodes["worker2"].reason) == ({"MIXED"}, "")
    assert [name for name, node in nodes.items() if not node.in_service] == ["worker3", "worker4", "worker5"]
    assert [name for name, node in nodes.items() if not node.busy] == ["worker1", "worker4", "worker5"]
    assert nodes["worker4"].reason == "bad DIMM, ticket 12 | row 3"
    assert nodes["worker4"].by == "ada@2026-11-22T10:00:00"
    assert nodes["worker3"].run == "run1"
    assert [name for name, node in nodes.items() if node.ready] == ["worker1"]


@pytest.mark.parametrize("text", ["sinfo: error: x", "|idle|", "main||idle|x|x|none"])
def test_what_is_not_a_table_is_no_answer(text):
    with pytest.raises(NoAnswer, match="printed something else"):
        parse_rows(text)
    assert parse_rows("\n\n") == []


@pytest.mark.parametrize(
    ("text", "words", "busy"),
    [
        *((f"idle{mark}", {"IDLE"}, False) for mark in ("", *"*~#!%$@^-")),
        ("allocated+", {"ALLOCATED"}, True),
        ("completing", {"COMPLETING"}, True),
        ("IDLE+COMPLETING+DRAIN", {"IDLE", "COMPLETING", "DRAIN"}, True),
        ("IDLE+DRAIN+NOT_RESPONDING", {"IDLE", "DRAIN", "NOT_RESPONDING"}, False),
        ("failing*", {"FAILING"}, True),
        ("maint", {"MAINT"}, False),
        ("a-state-of-next-year", {"A-STATE-OF-NEXT-YEAR"}, True),
    ],
)
def test_marks_are_no_part_of_a_state_and_an_unknown_state_is_busy(text, words, busy):
    state = node_state(text)
    assert (state.words, state.busy) == (words, busy)
    assert state.ready is (text == "idle")


def test_scontrol_show_node_is_read():
    nodes = parse_nodes((RECORDED / "nodes.txt").read_text())
    assert set(nodes) == {"worker1", "worker2"}
    one = nodes["worker1"]
    assert (one.cpus, one.memory_mib, one.gres, one.state.text, one.state.ready) == (
        2,
        1945,
        "",
        "IDLE",
        True,
    )
    (drained,) = parse_nodes((RECORDED / "drained.txt").read_text()).values()
    assert (drained.state.words, bool(drained.state.reason)) == ({"IDLE", "DRAIN"}, True)
    (sly,) = parse_nodes("NodeName=w1 State=IDLE+DRAIN Reason=State=DOWN CPUTot=9 [ada@now]\n").values()
    assert (sly.state.words, sly.state.reason, sly.cpus) == ({"IDLE", "DRAIN"}, "State=DOWN CPUTot=9", None)


def test_scontrol_show_config_is_read():
    config = parse_config((RECORDED / "config.txt").read_text())
    assert config["AccountingStorageEnforce"] == "associations,limits,qos,safe"
    assert Slurm.health_schedule(lambda _: "HealthCheckProgram = (null)\n").program == ""
    with pytest.raises(NoAnswer, match="does not mention HealthCheckProgram"):
        Slurm.health_schedule(lambda _: "Configuration data as of 2026\n")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("head1", ["head1"]),
        ("gpu[001-003,007],login1", ["gpu001", "gpu002", "gpu003", "gpu007", "login1"]),
        ("r[1-2]n[8-10]", ["r1n8", "r1n9", "r1n10", "r2n8", "r2n9", "r2n10"]),
        ("a,b[1]c", ["a", "b1c"]),
    ],
)
def test_hostlists(text, names):
    assert parse_hostlist(text) == names


@pytest.mark.parametrize(
    ("node", "requests", "name"),
    [
        ("gpu1", (GpuRequest(8),), "gpu:h100:8"),
        ("mig1", (GpuRequest(56, "1g.10gb"),), "gpu:1g.10gb:56"),
        ("mig2", (GpuRequest(32, "1g.10gb"), GpuRequest(8, "3g.40gb")), "gpu:1g.10gb:32,gpu:3g.40gb:8"),
        ("cpu1", (), None),
    ],
)
def test_a_job_asks_for_the_gres_that_slurm_conf_gives_the_node(node, requests, name):
    declared = CLUSTER.by_name[node]
    assert gpus_of(declared) == requests
    assert gres(declared) == gres(declared, requests) == name
    head = FakeSlurm(node)
    head.nodes[node].gres = gres(declared) or ""
    output = Slurm(CLUSTER, head).run(JobStep((node,), 1, ("true",), 60, gpus=requests))
    assert output.problem is None


def test_a_job_may_ask_for_fewer_and_a_gres_of_another_name_is_refused():
    assert gres(CLUSTER.by_name["mig2"], [GpuRequest(1, "3g.40gb")]) == "gpu:3g.40gb:1"
    head = FakeSlurm("mig1")
    head.nodes["mig1"].gres = "gpu:h100:8"
    output = Slurm(CLUSTER, head).run(JobStep(("mig1",), 1, ("true",), 60, gpus=(GpuRequest(56, "1g.10gb"),)))
    assert "Invalid generic resource" in output.problem


def test_a_slurm_that_is_not_installed_has_nothing_to_drain():
    head = FakeSlurm("gpu1")
    head.installed = False
    assert Slurm(CLUSTER, head).drain(["gpu1"], "R1", 1) == {}
    assert not [command for command in head.commands if command.startswith("scontrol")]


def test_an_error_names_the_head_the_command_and_slurms_words():
    head = FakeSlurm("gpu1")
    head.silent = True
    with pytest.raises(WorkloadError, match="on head1: `scontrol` exited 1: Unable to contact"):
        Slurm(CLUSTER, head).state("gpu1")


def test_the_manager_of_a_cluster_is_what_its_roles_declare():
    head = FakeSlurm()
    assert isinstance(manager_of(CLUSTER, head), Slurm)
    assert manager_of(make_cluster(), head) is None
    assert declared_on(make_cluster().primary) is None
    assert [node.name for node in CLUSTER.nodes if runs_jobs(node)] == ["gpu1", "mig1", "mig2", "cpu1"]
