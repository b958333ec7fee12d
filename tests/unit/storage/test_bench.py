"""A whole bench against nodes and a head that answer like real ones."""

import json
import time

import pytest

from rackwright.cli.storage_view import show_bench
from rackwright.cli.terminal import Console
from rackwright.errors import ConnectionFailed, ExitCode, StorageError
from rackwright.model.types import NodeRole
from rackwright.status import Status
from rackwright.storage.run import bench
from rackwright.storage.store import RESULTS, under_way, unfinished
from tests.factories import make_cluster, make_node
from tests.unit.storage.sites import LOOKED, Head, alone, cluster_of, filesystem, floor, line, together

CHECKPOINT = {"purpose": "checkpoint", "bench": {"checkpoint": {"size_mib": 8, "interval_seconds": 60}}}


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("rackwright.burnin.readiness.PATIENCE_SECONDS", 0)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def texts(report, status=None):
    found = [one for result in report.results for one in result.findings]
    return [one.text for one in found if status is None or one.status is status]


def low(**more):
    return floor(
        **{"read_gbs": 0.001, "write_gbs": 0.001, "together_read_gbs": 0.001, "metadata_ops": 10} | more
    )


def test_a_good_run_passes_is_stored_and_leaves_nothing():
    head = Head()
    report = bench(cluster_of(filesystem(floor=low())), shell=head)
    assert report.exit_code is ExitCode.CLEAN
    assert texts(report, Status.FAIL) == texts(report, Status.UNKNOWN) == []
    [result] = report.results
    assert [one.node for one in result.alone] == ["w1", "w2", "w3"]
    assert {one.key for one in result.figures} >= {
        "read_gbs",
        "write_gbs",
        "together_read_gbs",
        "metadata_ops",
    }
    assert (result.mounted, result.versions) == ("10.9.0.2:/srv/data (nfs4)", {"fio": "3.33"})
    assert [asked["do"] for node, asked in head.places] == ["look"] * 3 + ["make", "look", "remove"]
    [path] = RESULTS.folder("test").glob("*.json")
    assert json.loads(path.read_text()) == json.loads(json.dumps(report.to_json()))
    assert RESULTS.all("test") == [report.to_json()]
    assert head.names == {"rackwright-storage"}
    assert unfinished("test") == []
    assert report.verdict.startswith(
        "storage bench: data on w[1-3]: read, 3 nodes together 0.805 GB/s, write"
    )


def test_what_nodes_are_asked():
    head = Head()
    bench(cluster_of(filesystem(bench={"user": "bench", "folder": "home/bench"})), shell=head)
    [made] = [asked for _, asked in head.places if asked["do"] == "make"]
    assert (made["user"], made["folder"], made["unfinished"]) == ("bench", "home/bench", [])
    assert made["inner"] == ["alone.w1", "alone.w2", "alone.w3", "together", "checkpoint"]
    assert int(made["name"].split("-")[2]) > time.time()
    *each, (nodes, both) = head.jobs
    assert [node for node, _ in each] == [("w1",), ("w2",), ("w3",)]
    assert each[0][1]["folder"] == f"/data/home/bench/{made['name']}/alone.w1"
    assert {key: both[key] for key in ("nodes", "jobs", "size", "block", "files", "user", "address", "port")} == {
        "nodes": ["w1", "w2", "w3"], "jobs": 2, "size": 64 * 2**20, "block": 2**20, "files": 100, "user": "bench",
        "address": "10.9.0.21", "port": 18850,
    }  # fmt: skip
    assert nodes == ("w1", "w2", "w3")


def test_quick_writes_less():
    head = Head()
    bench(
        cluster_of(filesystem(bench={"size_mib": 8192, "block_kib": 4096, "files": 5000})),
        shell=head,
        quick=True,
    )
    assert [node for node, _ in head.jobs] == [("w1",), ("w2",), ("w1", "w2", "w3")]
    assert (head.jobs[0][1]["size"], head.jobs[0][1]["files"]) == (256 * 2**20, 100)


def test_a_node_under_its_floor_has_a_second_try_and_fails_by_name():
    head = Head()
    given = filesystem(floor=floor(read_gbs=100), nodes=("w1", "w2"))
    report = bench(cluster_of(given, workers=2), shell=head)
    assert [node for node, _ in head.jobs][:4] == [("w1",), ("w1",), ("w2",), ("w2",)]
    assert report.exit_code is ExitCode.CHECK_FAILED
    assert texts(report, Status.FAIL)[0].startswith("w[1-2]: read, one node alone:")


@pytest.mark.parametrize("state", ["drained", "allocated"])
def test_nodes_that_are_not_ready_stop_it(state):
    head = Head(w2=state)
    report = bench(cluster_of(), shell=head)
    assert texts(report) == [f"1 of 3 nodes are not ready, nothing was run: w2: {state}"]
    assert report.exit_code is ExitCode.UNKNOWN
    assert head.places == head.jobs == []


def test_without_the_role_nothing_is_run():
    head = Head()
    report = bench(cluster_of(role=False), shell=head)
    assert texts(report) == [
        "no role provides the programs of the bench on w[1-3]: add `storage_bench: {}` under `roles`"
    ]
    assert (report.exit_code, head.jobs) == (ExitCode.UNKNOWN, [])


def test_a_mount_that_hangs_on_one_node_leaves_it_out_by_name():
    head = Head()
    head.looks["w2"] = {"hung": 20.0}
    head.together = together(2)
    report = bench(cluster_of(), shell=head)
    assert texts(report, Status.UNKNOWN) == ["w2: /data: the filesystem did not answer within 20 s"]
    assert report.results[0].nodes == ("w1", "w3")
    assert head.jobs[-1][0] == ("w1", "w3")


def test_where_every_node_hangs_nothing_is_written():
    head = Head()
    head.looks = {name: {"hung": 20.0} for name in ("w1", "w2", "w3")}
    report = bench(cluster_of(), shell=head)
    assert len(texts(report, Status.UNKNOWN)) == 3
    assert head.jobs == []
    assert {asked["do"] for _, asked in head.places} == {"look"}


def test_too_little_space_writes_nothing():
    head = Head()
    head.looks["w1"] = LOOKED | {"free_bytes": 2**30}
    report = bench(cluster_of(), shell=head)
    assert "nothing was written" in texts(report, Status.UNKNOWN)[0]
    assert {asked["do"] for _, asked in head.places} == {"look"}


def test_a_hang_in_mid_run_ends_the_bench_of_that_filesystem():
    head = Head()
    head.alone["w1"] = line({"write": {"hung": True}})
    report = bench(cluster_of(filesystem(purpose="checkpoint")), shell=head)
    found = texts(report, Status.UNKNOWN)
    assert found[0] == "w1 alone: write: not finished within 900 s: the filesystem hangs, or is far too slow"
    rest = "not run: the filesystem did not answer in time before"
    assert found[1:] == [f"w2 alone: {rest}", f"w3 alone: {rest}", f"together: {rest}", f"checkpoint: {rest}"]
    assert len(head.jobs) == 1
    assert head.places[-1][1]["seconds"] == 60, "five minutes are for a filesystem that answers"


def test_a_removal_that_hangs_is_tried_once():
    head = Head()
    head.removed = {"hung": 300.0}
    [text] = texts(bench(cluster_of(), shell=head), Status.UNKNOWN)
    assert "was left behind: the filesystem did not answer within 300 s; the next bench removes it" in text
    assert [asked["do"] for _, asked in head.places].count("remove") == 1


def test_a_folder_that_cannot_be_made_names_the_way_out():
    head = Head()
    head.made = {"error": "PermissionError: [Errno 13] Permission denied: '/data/x'"}
    report = bench(cluster_of(), shell=head)
    [text] = texts(report, Status.UNKNOWN)
    assert text.startswith("w1: cannot make a folder on /data: PermissionError")
    assert "declare `bench: {user: ..., folder: ...}`" in text
    assert head.jobs == []


def test_what_is_left_is_named_and_removed_by_the_next_bench():
    head = Head()
    head.removed = {"error": "OSError: [Errno 39] Directory not empty"}
    report = bench(cluster_of(), shell=head)
    [text] = texts(report, Status.UNKNOWN)
    assert "was left behind: OSError: [Errno 39] Directory not empty; the next bench removes it" in text
    [left] = unfinished("test")
    again = Head()
    bench(cluster_of(), shell=again)
    [made] = [asked for _, asked in again.places if asked["do"] == "make"]
    assert made["unfinished"] == [left]


def test_a_run_that_is_under_way_is_not_unfinished():
    with under_way("test", "a"):
        assert unfinished("test") == []
    assert unfinished("test") == ["a"]


def test_an_interrupted_run_removes_its_folder():
    head = Head()
    head.raises = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        bench(cluster_of(), shell=head)
    assert [asked["do"] for _, asked in head.places][-1] == "remove"


def test_a_head_that_is_gone_is_unknown():
    head = Head()
    head.raises = ConnectionFailed("Cannot connect to head1.")
    report = bench(cluster_of(), shell=head)
    assert texts(report) == ["Cannot connect to head1."]
    assert report.exit_code is ExitCode.UNKNOWN


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"read_only": True}, "data: it is mounted read-only, and the bench has to write"),
        (
            {"purpose": "state"},
            "data: services keep their state on it, and the load of a bench would stall them",
        ),
        ({"nodes": ("head1",)}, "data: no node that runs jobs uses it"),
    ],
)
def test_out_of_scope_by_name(changes, why):
    head = Head()
    report = bench(cluster_of(filesystem(**changes)), shell=head)
    assert texts(report) == [why]
    assert (report.status, report.exit_code, head.jobs) == (Status.OUT_OF_SCOPE, ExitCode.CLEAN, [])


def test_local_drives_are_measured_on_every_node_by_itself():
    head = Head()
    one = filesystem(kind="local", servers=(), export=None, name="scratch", path="/scratch")
    report = bench(cluster_of(one), shell=head)
    assert sorted(node for node, _ in head.jobs) == [("w1",), ("w2",), ("w3",)]
    assert texts(report, Status.OUT_OF_SCOPE) == [
        "scratch: each node has its own: all nodes together are not measured"
    ]
    assert [asked["do"] for _, asked in head.places].count("remove") == 3


def test_nodes_can_be_limited_and_a_filesystem_chosen():
    head = Head()
    other = filesystem(name="other", path="/other")
    report = bench(cluster_of(filesystem(), other), shell=head, name="other", limit="w[1-2]")
    assert [(one.name, one.nodes) for one in report.results] == [("other", ("w1", "w2"))]
    assert texts(bench(cluster_of(), shell=head, limit="head1")) == [
        "data: none of head1 uses it and runs jobs"
    ]


def test_the_checkpoint_stage_runs_where_the_purpose_is_checkpoint():
    head = Head()
    report = bench(cluster_of(filesystem(**CHECKPOINT)), shell=head)
    [result] = report.results
    assert (result.checkpoint.loaded, result.checkpoint.ranks) == ("step-4", 4)
    modes = [(nodes, asked["mode"], asked["nodes"]) for nodes, asked in head.jobs if "mode" in asked]
    assert [mode for _, mode, _ in modes] == ["reference", "break", "resume"]
    assert modes[1][2] == modes[2][2][::-1], "each rank resumes on another node"
    assert texts(report, Status.FAIL) == texts(report, Status.UNKNOWN) == []
    assert result.versions == {"fio": "3.33", "torch": "2.13.0+cpu"}


def test_the_checkpoint_stage_alone():
    head = Head()
    one = filesystem(bench={"checkpoint": {"size_mib": 8}})
    report = bench(cluster_of(filesystem(name="home"), one), shell=head, only_checkpoint=True)
    assert [result.name for result in report.results] == ["data"]
    assert (len(head.jobs), report.results[0].figures) == (3, ())
    assert report.status is Status.PASS
    with pytest.raises(StorageError, match=r"The filesystem data has no checkpoint stage."):
        bench(cluster_of(), name="data", shell=head, only_checkpoint=True)


def test_without_torch_two_runs_are_spared():
    head = Head()
    head.checkpoint["reference"] = line({"missing": "torch cannot be loaded: No module named 'torch'"})
    report = bench(cluster_of(filesystem(**CHECKPOINT)), shell=head)
    assert report.exit_code is ExitCode.UNKNOWN
    assert sum("mode" in asked for _, asked in head.jobs) == 1
    assert "No module named 'torch'" in texts(report, Status.UNKNOWN)[0]


def test_too_few_nodes_for_checkpoints():
    report = bench(cluster_of(filesystem(**CHECKPOINT)), shell=Head(), limit="w1")
    assert "checkpoint: 1 of 2 nodes can take part: nothing was run" in texts(report, Status.UNKNOWN)


def test_a_rate_that_fell_by_more_than_noise_is_a_warning(monkeypatch):
    head = Head()
    first = bench(cluster_of(), shell=head).to_json()
    folder = RESULTS.folder("test")
    for path in folder.glob("*.json"):
        path.unlink()
    for day in range(1, 6):
        (folder / f"2026010{day}T000000Z.json").write_text(json.dumps(first))
    same = bench(cluster_of(), shell=Head())
    assert not [text for text in texts(same) if "earlier runs" in text]
    slower = Head()
    slower.together = together(3, seconds=1.0)
    [text] = [
        text for text in texts(bench(cluster_of(), shell=slower), Status.WARN) if "read, 3 nodes" in text
    ]
    assert (
        "50 % below the median of 5 earlier runs" in text or "50 % below the median of 6 earlier runs" in text
    )
    quick = bench(cluster_of(filesystem(bench={"files": 50})), shell=slower)
    assert not [text for text in texts(quick) if "earlier runs" in text], "other settings are not compared"


def test_what_is_refused():
    nothing = make_cluster(make_node("head1", 10, NodeRole.HEAD), make_node("w1", 21))
    with pytest.raises(StorageError, match="Cluster test declares no filesystem"):
        bench(nothing, shell=Head())
    with pytest.raises(StorageError) as error:
        bench(cluster_of(), shell=Head(), name="dta")
    assert (error.value.message, error.value.hint) == (
        "There is no filesystem dta in cluster test.", "did you mean `data`?",
    )  # fmt: skip
    without = make_cluster(make_node("w1", 21), storage={"data": filesystem()})
    with pytest.raises(StorageError, match="No role of cluster test runs a workload manager"):
        bench(without, shell=Head())


def test_the_view(capsys):
    head = Head()
    report = bench(cluster_of(filesystem(**CHECKPOINT, floor=floor(read_gbs=100))), shell=head)
    show_bench(report, Console(width=160))
    shown = capsys.readouterr().out
    assert "data  /data, nfs, checkpoint, w[1-3]" in shown
    assert "read, one node alone" in shown
    assert "checkpoint: 4 ranks on w[1-2], 8 MiB each: a save takes" in shown
    assert "FAIL: w[1-3]: read, one node alone:" in shown
    assert "10.9.0.2:/srv/data (nfs4), fio 3.33, torch 2.13.0+cpu" in shown


def test_a_node_with_another_answer_each_time_counts_with_the_better():
    head = Head()
    head.alone["w1"] = [alone(read="fio-3.33-wrong.txt", read_exit=1)]
    report = bench(cluster_of(filesystem(floor=floor(read_gbs=100))), shell=head)
    assert [node for node, _ in head.jobs].count(("w1",)) == 1, "wrong data has no second try"
    assert any("data read is not the data written" in text for text in texts(report, Status.FAIL))
