"""Every node alone, before the fabric."""

from __future__ import annotations

import pytest

from rackwright.burnin import burnin
from rackwright.burnin.floors import FULL_SIZE, Floor
from rackwright.burnin.per_node import NodeFigure, judge_nodes
from rackwright.burnin.table import parse_nccl_tests
from rackwright.errors import ExitCode
from rackwright.model.types import NodeRole
from rackwright.status import Status
from tests.factories import RunsSlurm, make_cluster, make_gpu_sku, make_node
from tests.unit.burnin.head import Head, cluster_of, table


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("rackwright.burnin.readiness.PATIENCE_SECONDS", 0)


def test_a_slow_node_is_named_and_left_out_of_the_collectives():
    head = Head()
    head.node_busbw = {"w3": 2.0}
    report = burnin(cluster_of(4), shell=head)
    [group] = report.groups
    assert report.exit_code is ExitCode.CHECK_FAILED
    assert [found.text for found in group.findings] == [
        "w3 alone: 2 GB/s at 67108864 B, 60 % below the median of 5 GB/s (most 50 %; no floor is declared)",
        "the collectives ran without w3",
    ]
    assert group.left_out == ("w3",)
    assert head.together == [("w1", "w2", "w4")]
    assert (group.ranks, group.to_json()["per_node"][2]["busbw_gbs"]) == (3, 2.0)


def test_each_node_runs_two_ranks_of_its_own_and_large_messages():
    head = Head()
    burnin(cluster_of(3), shell=head)
    alone = [job for job in head.jobs if "--nodes=1" in job]
    assert len(alone) == 3
    assert all("--ntasks-per-node=2" in job and "= 8388608, 67108864" in job for job in alone)


def test_a_node_that_was_busy_once_has_a_second_try():
    class Busy(Head):
        def _srun(self, command):
            said = super()._srun(command)
            if "--nodes=1" in command and "nodelist=w2" in command:
                self.node_busbw = {}
            return said

    head = Busy()
    head.node_busbw = {"w2": 1.0}
    group = burnin(cluster_of(3), shell=head).groups[0]
    assert (group.left_out, group.status) == ((), Status.PASS)
    assert len([job for job in head.jobs if "nodelist=w2" in job]) == 2


def test_wrong_values_have_no_second_try():
    class Wrong(Head):
        def _srun(self, command):
            said = super()._srun(command)
            bad = "--nodes=1" in command and "nodelist=w2" in command
            return said.replace("5.0     5.0  0", "5.0     5.0  7") if bad else said

    head = Wrong()
    group = burnin(cluster_of(3), shell=head).groups[0]
    assert group.findings[0].status is Status.FAIL
    assert "w2 alone: wrong values: " in group.findings[0].text
    assert len([job for job in head.jobs if "nodelist=w2" in job]) == 1


def test_the_sites_floor_of_one_node_decides():
    head = Head()
    head.node_busbw = {"w1": 3.9}
    settings = {"floors_by_nodes": {1: 4}, "floor_busbw_gbs": 1.0}
    group = burnin(cluster_of(2, **settings), shell=head).groups[0]
    assert group.findings[0].text == (
        "w1 alone: 3.9 GB/s at 67108864 B is below the floor of 4 GB/s (test, `floors_by_nodes`)"
    )
    assert "the collectives did not run: only w2 of 2 nodes are sound alone" in group.findings[-1].text
    assert head.together == []


def test_a_node_without_a_figure_is_unknown_and_left_out():
    class Broken(Head):
        def _srun(self, command):
            if "--nodes=1" in command and "nodelist=w2" in command:
                return "ModuleNotFoundError: No module named 'mpi4py'\n# srun exit status 1\n"
            return super()._srun(command)

    report = burnin(cluster_of(3), shell=Broken())
    assert report.exit_code is ExitCode.UNKNOWN
    assert "w2 alone: the output cannot be read" in report.groups[0].findings[0].text
    assert report.groups[0].left_out == ("w2",)


def test_two_nodes_without_a_floor_are_measured_and_not_judged():
    group = burnin(cluster_of(2), shell=Head()).groups[0]
    assert (group.findings[0].status, group.status) == (Status.OUT_OF_SCOPE, Status.PASS)
    assert "not judged" in group.findings[0].text


def figure(node, busbw, size=2**33):
    row = parse_nccl_tests(table([node], [size], busbw, per_node=8)).largest
    return NodeFigure(node, busbw, size), row, False


def test_by_the_floor_of_the_sku():
    floor = Floor(460, "Azure", FULL_SIZE, 1)
    found = judge_nodes([figure("w1", 470.0), figure("w2", 455.0)], floor, 0.95)
    assert [one.text for one in found.findings] == [
        "w2 alone: 455 GB/s at 8589934592 B is below the floor of 460 GB/s (Azure)"
    ]
    assert found.left_out == ("w2",)


def test_a_size_that_the_floor_is_not_for_is_unknown_but_stays():
    found = judge_nodes([figure("w1", 300.0, 2**29)], Floor(460, "Azure", FULL_SIZE, 1), 0.95)
    assert [one.status for one in found.findings] == [Status.UNKNOWN]
    assert found.left_out == ()


def test_wrong_values_fail_a_node():
    found = judge_nodes([(NodeFigure("w1", None, None, "wrong values: 7"), None, True)], None, 0.5)
    assert [(one.status, one.text) for one in found.findings] == [(Status.FAIL, "w1 alone: wrong values: 7")]


def test_instances_of_mig_are_out_of_scope_by_name():
    options = {"slurm": RunsSlurm()}
    workers = [make_node(f"w{n}", 10 + n, sku=make_gpu_sku(), mig={"1g.10gb": 7}) for n in (1, 2)]
    cluster = make_cluster(make_node("head1", 10, NodeRole.HEAD, options=options), *workers)

    class Silent(Head):
        def _srun(self, command):
            return "# srun exit status 0\n"

    findings = burnin(cluster, shell=Silent()).groups[0].findings
    assert any(
        one.status is Status.OUT_OF_SCOPE and "divided by MIG (1g.10gb)" in one.text for one in findings
    )
