"""A whole burn-in against a head that answers like Slurm."""

import json
import re
import shlex

import pytest

from rackwright.burnin import burnin
from rackwright.burnin.report import bytes_text
from rackwright.burnin.store import RESULTS
from rackwright.cli.burnin_view import show_burnin
from rackwright.command import CommandResult
from rackwright.errors import BurninError, ConnectionFailed, ExitCode
from rackwright.model.types import NodeRole
from rackwright.state_folder import state_folder
from rackwright.status import Status
from tests.factories import RunsSlurm, make_cluster, make_gpu_sku, make_node, make_sku
from tests.unit.burnin.head import Head, cluster_of, table


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("rackwright.burnin.readiness.PATIENCE_SECONDS", 0)


def test_a_good_run_passes_is_stored_and_compared_with_the_one_before():
    head = Head(busbw=5.0)
    report = burnin(cluster_of(), shell=head)
    assert report.exit_code is ExitCode.CLEAN
    assert report.verdict == "burnin: w[1-2] 5 GB/s at 67108864 B (floor 1): PASS"
    group = report.groups[0]
    assert (group.engine, group.ranks, group.versions) == ("mpi", 2, {"slurm": "24.11.5", "kernel": "6.12.1"})
    assert group.previous is None
    [path] = RESULTS.folder("test").glob("*.json")
    assert oct(path.parent.stat().st_mode & 0o777) == "0o700"
    assert json.loads(path.read_text()) == json.loads(json.dumps(report.to_json()))
    path.rename(path.with_name("20260101T000000Z.json"))
    again = burnin(cluster_of(), shell=Head(busbw=4.0)).groups[0].previous
    assert (again.busbw_gbs, again.change_percent) == (5.0, -20.0)


def test_the_job_is_roots_bounded_and_alone_on_its_nodes():
    head = Head()
    burnin(cluster_of(partition="main", timeout_seconds=90), shell=head)
    *alone, job = head.jobs
    assert len(alone) == 2  # each node by itself first
    words = shlex.split(job.removeprefix("{ ").split('; echo "# srun')[0])
    assert words[:3] == ["env", "OMPI_MCA_mpi_yield_when_idle=1", "srun"]
    for option in (
        "--account=burnin", "--partition=main", "--nodes=2", "--nodelist=w[1-2]", "--ntasks=2", "--ntasks-per-node=1",
        "--exclusive", "--mpi=pmix", "--time=2", "--immediate=60", "--input=none",
    ):  # fmt: skip
        assert option in words
    assert words[-3:-1] == ["python3", "-c"]


def test_no_floor_is_unknown():
    report = burnin(cluster_of(floor_busbw_gbs=None), shell=Head())
    assert report.exit_code is ExitCode.UNKNOWN
    assert any("no floor is declared for this many nodes" in one.text for one in report.groups[0].findings)


@pytest.mark.parametrize("state", ["down*", "allocated", "drained", "idle*", "gone"])
def test_a_node_that_is_not_idle_stops_the_run_and_is_named(state):
    head = Head(w2=state)
    report = burnin(cluster_of(3), shell=head)
    shown = "not in Slurm" if state == "gone" else state
    assert report.groups[0].findings[0].text == f"1 of 3 nodes are not ready, nothing ran: w2: {shown}"
    assert report.exit_code is ExitCode.UNKNOWN
    assert head.jobs == []


def test_a_node_that_does_not_answer_is_not_left_to_slurm_to_miss():
    head = Head(w2="dead")
    report = burnin(cluster_of(3), shell=head)
    assert (
        report.groups[0].findings[0].text
        == "1 of 3 nodes are not ready, nothing ran: w2: Cannot connect to w2."
    )
    assert head.jobs == []


def slow(bad, workers, busbw=0.5):
    """What pairs reach where one node is slow."""
    names = [f"w{n}" for n in range(1, workers + 1)]
    return {(one, two): busbw for one in names for two in names if one < two and bad in (one, two)}


def test_under_the_floor_the_search_names_the_bad_node_and_every_run_is_kept():
    head = Head(busbw=0.5)
    head.pair_busbw = slow("w3", 4)
    report = burnin(cluster_of(4), shell=head)
    group = report.groups[0]
    assert report.exit_code is ExitCode.CHECK_FAILED
    assert "below the floor of 1 GB/s (test)" in group.findings[0].text
    assert group.findings[1].text == "culprit: w3, not measured by rail: 0.5 GB/s with it, 2 without a fault"
    assert (group.pairs, group.triage) == ((), None)
    kept = report.to_json()["groups"][0]["culprits"]
    assert [one["nodes"] for one in kept["found"]] == [["w3"]]
    assert kept["limit_gbs"] == 2.0, "half of the fastest pair: ranks on CPUs differ"
    assert [run["number"] for run in kept["runs"]] == list(range(1, len(head.searched) + 1))
    assert kept["runs"][1] == {
        "number": 2, "round": 1, "kind": "collective", "way": "leaf", "nodes": "w[3-4]", "busbw_gbs": 0.5, "ports": [],
        "problem": None, "slow": True,
    }  # fmt: skip


def test_where_no_pair_is_slow_nothing_is_named():
    report = burnin(cluster_of(4), shell=Head(busbw=0.5))
    [under, nothing] = report.groups[0].findings
    assert under.status is Status.FAIL
    assert nothing.status is Status.UNKNOWN
    assert nothing.text.startswith(
        "culprit: no pair of nodes is slow below a leaf or across the spines (5 runs)"
    )


def test_pairs_on_demand_name_the_bad_node_too():
    head = Head(busbw=0.5)
    head.pair_busbw = dict.fromkeys(slow("w1", 4) | slow("w2", 4), 4.0) | slow("w3", 4)
    group = burnin(cluster_of(4), shell=head, pairs=True).groups[0]
    assert len(group.pairs) == 4
    assert "w3" in group.triage.slowest.nodes
    assert [one.culprit.nodes for one in group.chased.named] == [("w3",)]


def test_pairs_on_demand():
    assert len(burnin(cluster_of(3), shell=Head(), pairs=True).groups[0].pairs) == 3
    assert burnin(cluster_of(3), shell=Head()).groups[0].pairs == ()


@pytest.mark.parametrize(
    ("output", "status", "says"),
    [
        ("srun: error: Unable to allocate resources: Invalid account\n# srun exit status 1\n", Status.UNKNOWN, "srun exited 1: srun: error: Unable to allocate"),
        ("ModuleNotFoundError: No module named 'mpi4py'\n# srun exit status 1\n", Status.UNKNOWN, "srun exited 1: ModuleNotFoundError"),
        ("", Status.UNKNOWN, "truncated"),
        (table(["w1", "w2"], [8], 5.0), Status.UNKNOWN, "23 rows are missing"),
        (table(["w1"], [2**n for n in range(3, 27)], 5.0), Status.UNKNOWN, "1 of 2 ranks took part"),
        (table(["w1", "w2"], [2**n for n in range(3, 27)], 5.0, wrong="7"), Status.FAIL, "wrong values"),
        (table(["w1", "w2"], [2**n for n in range(3, 27)], 5.0).replace("status 0", "status 143"), Status.UNKNOWN, "srun exited 143"),
    ],
)  # fmt: skip
def test_what_comes_back_decides(output, status, says):
    head = Head()
    head.output = output
    group = burnin(cluster_of(), shell=head).groups[0]
    assert group.status is status
    assert any(says in finding.text for finding in group.all_findings), group.all_findings


def test_a_head_that_cannot_be_reached_is_unknown():
    class Gone(Head):
        def run(self, node, command, **_):
            raise ConnectionFailed("Cannot connect to head1.")

    report = burnin(cluster_of(), shell=Gone())
    assert report.exit_code is ExitCode.UNKNOWN
    assert report.groups[0].findings[0].text == "Cannot connect to head1."


def test_slurm_that_does_not_answer_is_unknown():
    class Dead(Head):
        def run(self, node, command, **_):
            return CommandResult(
                command, 1, "", "slurm_load_partitions: Unable to contact slurm controller\n"
            )

    assert (
        "Unable to contact slurm controller" in burnin(cluster_of(), shell=Dead()).groups[0].findings[0].text
    )


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), ConnectionFailed("lost")])
def test_a_job_that_is_left_is_cancelled(fault):
    head = Head()
    head.fault = fault
    try:
        burnin(cluster_of(), shell=head)
    except KeyboardInterrupt:
        assert isinstance(fault, KeyboardInterrupt)
    cancel = r"scancel --jobname=rackwright-burnin-[0-9a-f]{8} --user=root"
    assert any(re.fullmatch(cancel, command) for command in head.commands)


def test_out_of_time_cancels():
    head = Head()
    head.run_before, head.output = head.run, "half a table\n"
    burnin(cluster_of(), shell=head)
    assert any(command.startswith("scancel") for command in head.commands)


def test_nodes_of_one_sku_and_another_mig_layout_are_another_group():
    options = {"slurm": RunsSlurm()}
    gpus = make_gpu_sku()
    cluster = make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options=options),
        make_node("w1", 11, sku=gpus),
        make_node("w2", 12, sku=gpus, mig={"1g.10gb": 7}),
    )
    head = Head(w1="down", w2="down")
    assert [(group.nodes, group.ranks) for group in burnin(cluster, shell=head).groups] == [
        (("w1",), 8),
        (("w2",), 56),
    ]


def test_without_a_workload_manager_nothing_is_run():
    with pytest.raises(BurninError, match="no role of cluster test runs one"):
        burnin(make_cluster(), shell=Head())


def test_nodes_must_be_workers():
    with pytest.raises(BurninError, match="head1 is not a worker"):
        burnin(cluster_of(), nodes="head1,w1", shell=Head())
    assert burnin(cluster_of(3), nodes="w[1-2]", shell=Head()).groups[0].nodes == ("w1", "w2")


def test_one_node_uses_two_cores_and_one_core_is_unknown():
    head = Head()
    burnin(cluster_of(1), shell=head)
    assert "--ntasks-per-node=2" in head.jobs[0]
    lone = make_sku(cores_per_socket=1)
    single = make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options={"slurm": RunsSlurm()}), make_node("w1", 11, sku=lone)
    )
    assert "one rank alone" in burnin(single, shell=Head()).groups[0].findings[0].text


def test_never_more_ranks_than_cores():
    with pytest.raises(BurninError, match="3 ranks per node exceed the 2 cores"):
        burnin(cluster_of(), ranks_per_node=3, shell=Head())


def test_show(capsys):
    from rich.console import Console

    head = Head(busbw=0.5)
    head.pair_busbw = slow("w2", 3)
    show_burnin(burnin(cluster_of(3), shell=head, pairs=True), Console(width=140))
    out = capsys.readouterr().out
    assert "w[1-3] (test-node)  mpi, 3 nodes, 3 ranks" in out
    assert "64 MiB" in out
    assert "FAIL: 0.5 GB/s at 67108864 B is below the floor" in out
    assert "slowest pair: w" in out
    assert "FAIL: culprit: w2, not measured by rail: 0.5 GB/s with it, 2 without a fault" in out
    assert "  search: 5 runs in 5 rounds, slow under 2 GB/s" in out
    assert "    2. collective, pairs below a leaf, w[1,3]: 4 GB/s" in out
    assert out.splitlines()[-1] == "burnin: w[1-3] 0.5 GB/s at 67108864 B (floor 1): FAIL"


def test_sizes_in_words():
    assert [bytes_text(size) for size in (8, 1024, 1536, 2**26, 2**34)] == [
        "8 B",
        "1 KiB",
        "1536 B",
        "64 MiB",
        "16 GiB",
    ]


def test_state_folder_is_private_and_ignores_a_relative_home(tmp_path, monkeypatch):
    assert state_folder("lab") == tmp_path / "rackwright" / "lab"
    assert oct(state_folder("lab").stat().st_mode & 0o777) == "0o700"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert state_folder("lab") == tmp_path / "home" / ".local" / "state" / "rackwright" / "lab"
