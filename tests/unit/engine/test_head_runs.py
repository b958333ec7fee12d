"""Runs of other operators, read from a head that may be gone or lie, and continued after confirmation."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rackwright.cli import app
from rackwright.cli import resume as resume_module
from rackwright.cli import runs as runs_module
from rackwright.command import CommandResult
from rackwright.engine import head_lock, head_runs, runs_reader
from rackwright.engine.head_lock import HeadLock
from rackwright.engine.head_runs import all_runs, run_of_others
from rackwright.engine.journal import Journal, event_line
from rackwright.engine.journal_lines import gather
from rackwright.engine.left_drained import put_back_all
from rackwright.engine.run_lock import who
from rackwright.errors import ConnectionFailed, RackwrightError, RunLocked
from tests.factories import make_cluster
from tests.unit.engine.local_head import LocalHeads
from tests.unit.workload.fake_manager import MemoryManager

CLUSTER = make_cluster()


class LocalPool:
    """In the place of ssh: commands run here, and `answer` is what a head says instead."""

    answer: str | None = None
    gone = False

    def __init__(self, cluster):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, node, command, *, stdin=None, timeout):
        if self.gone:
            raise ConnectionFailed(f"Cannot connect to {node}: it is off.")
        done = subprocess.run(
            ["sh", "-c", command], input=stdin, capture_output=True, timeout=timeout, check=False
        )
        out = done.stdout.decode() if self.answer is None else self.answer
        return CommandResult(command, done.returncode, out, done.stderr.decode())


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A head on this machine; `machine("b")` makes this the machine of another operator."""
    heads = LocalHeads()
    monkeypatch.setattr(head_lock, "_dial", heads.dial)
    for module in (head_lock, head_runs):
        monkeypatch.setattr(module, "LOCKS", str(tmp_path / "run"))
        monkeypatch.setattr(module, "JOURNALS", str(tmp_path / "lib" / "runs"))
    monkeypatch.setattr("rackwright.ssh.Pool", LocalPool)
    for module in (resume_module, runs_module):
        monkeypatch.setattr(module, "load_cluster", lambda file: CLUSTER)
    monkeypatch.setattr(LocalPool, "answer", None)
    monkeypatch.setattr(LocalPool, "gone", False)

    def be(name):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / name))

    be("a")
    yield be
    heads.end()


def run_of_a(*, ends=True, deploy=None):
    """A run of the first operator that drained two workers; killed, unless it `ends`."""
    journal = Journal("test", Path("/home/ada/c.yaml"), limit="worker[1-2]", roles=None, deploy=deploy)
    lock = HeadLock(CLUSTER, {"run": journal.run, **who()}, lost=pytest.fail)
    lock.__enter__()
    journal.mirror = lock.send
    journal.__enter__()
    journal.write("drain", nodes=["worker1", "worker2"])
    journal.write("start", node="worker1", role="base", name="Write it")
    if ends:
        journal.__exit__(None, None, None)
    lock.__exit__()
    return journal.run


def test_another_machine_lists_shows_and_names_what_was_left_drained(machine, tmp_path):
    run = run_of_a(ends=False)
    machine("b")
    (tmp_path / "c.yaml").write_text("")
    file = str(tmp_path / "c.yaml")
    (found,) = all_runs(CLUSTER).runs
    assert (found.run, found.state, found.left_drained) == (run, "interrupted", ["worker1", "worker2"])
    assert found.open_operations == [], "of a list, single operations are left out"
    assert [one["name"] for one in run_of_others(CLUSTER, run).open_operations] == ["Write it"]
    shown = CliRunner().invoke(app, ["runs", file])
    assert (
        f"worker[1-2]: left drained by run {run}; put back by: rackwright resume {run} {file}" in shown.stdout
    )
    assert "Write it" in CliRunner().invoke(app, ["runs", run, file]).stdout
    assert CliRunner().invoke(app, ["runs"]).stdout.count(run) == 0, "without a file: those of this machine"


def arrived(run, text):
    """Wait until the head has a line of a run; the lock's own thread sends it."""
    deadline = time.monotonic() + 20
    path = Path(head_lock.JOURNALS) / "test" / f"{run}.jsonl"
    while not (path.exists() and text in path.read_text()):
        assert time.monotonic() < deadline, f"{path} has no {text}"
        time.sleep(0.05)


def test_a_run_that_holds_the_lock_goes_on(machine, tmp_path):
    journal = Journal("test", Path("c.yaml"), limit=None, roles=None)
    with HeadLock(CLUSTER, {"run": journal.run, **who()}, lost=pytest.fail) as lock:
        journal.mirror = lock.send
        with journal:
            journal.write("drain", nodes=["worker1"])
            arrived(journal.run, '"drain"')
            machine("b")
            assert [run.state for run in all_runs(CLUSTER).runs] == ["running"]
            with pytest.raises(RackwrightError, match="is still running"):
                resume_module.resume_command(journal.run, tmp_path, yes=True)


@pytest.fixture
def resumed(monkeypatch):
    called = []
    monkeypatch.setattr(resume_module, "_warn_if_edited", lambda known, file: None)

    def carry_out(file, limit, roles, consent, flags, parallel, *, resumed):
        called.append((file, limit, resumed))

    monkeypatch.setattr(resume_module, "carry_out", carry_out)
    return called


def test_it_is_continued_with_ones_own_file_and_only_after_confirmation(machine, resumed, monkeypatch):
    run = run_of_a(ends=False)
    machine("b")
    mine = Path("/home/bob/c.yaml")
    with pytest.raises(RackwrightError, match="not a terminal"):
        resume_module.resume_command(run, mine, yes=False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.prompt", lambda *_, **__: "yes")
    with pytest.raises(RackwrightError, match="is not the run's ID"):
        resume_module.resume_command(run, mine, yes=False)
    assert resumed == []
    monkeypatch.setattr("typer.prompt", lambda *_, **__: run)
    resume_module.resume_command(run, mine, yes=False)
    resume_module.resume_command(run, mine, yes=True)
    assert resumed == [(mine, "worker[1-2]", run)] * 2, "never the path that the head names"


def test_a_deploy_that_a_head_invents_is_not_run(machine, resumed):
    run = run_of_a(ends=False, deploy="../../evil")
    machine("b")
    with pytest.raises(RackwrightError, match="which this version does not know"):
        resume_module.resume_command(run, Path("c.yaml"), yes=True)
    assert resumed == []


@pytest.mark.parametrize("run", ["../../etc/passwd", "20261123T074215Z-0a1b2c; rm -rf /", "", "x"])
def test_only_names_of_runs_are_asked_for(machine, run):
    with pytest.raises(RackwrightError, match="is not a valid run name"):
        run_of_others(CLUSTER, run)


@pytest.mark.parametrize(
    "answer",
    [
        "", "[]", "{}", "Infinity", "[" * 99999, '{"holder": 1, "journals": {}}', '{"holder": null, "journals": {"x": 1}}',
        '{"holder": null, "journals": {"20261123T074215Z-0a1b2c": [7]}}',
    ],
)  # fmt: skip
def test_garbage_of_a_head_costs_the_runs_of_others_alone(machine, monkeypatch, tmp_path, answer):
    run = run_of_a()
    monkeypatch.setattr(LocalPool, "answer", answer)
    known = all_runs(CLUSTER)
    assert [one.run for one in known.runs] == [run]
    assert "Cannot read the runs of other operators" in known.problem


def test_lines_of_a_head_are_checked_and_printable(machine, monkeypatch, tmp_path):
    name = "20261123T074215Z-0a1b2c"
    begin = {
        "cluster": "test",
        "file": "f",
        "limit": None,
        "roles": None,
        "user": "\x1b[2Jx",
        "host": "h",
        "command": "c[red]",
    }
    lines = [
        event_line("begin", **begin),
        event_line("drain", nodes=[{}]),
        "garbage",
        "null",
        event_line("node", node=7),
    ]
    journals = {
        name: lines,
        "../x": lines,
        "20261123T074215Z-0a1b2d": [event_line("begin", **{**begin, "cluster": "b"})],
    }
    monkeypatch.setattr(
        LocalPool, "answer", json.dumps({"holder": {"run": [], "idle_seconds": "x"}, "journals": journals})
    )
    (found,) = all_runs(CLUSTER).runs
    assert (found.run, len(found.events)) == (name, 1)
    (tmp_path / "c.yaml").write_text("")
    shown = CliRunner().invoke(app, ["runs", str(tmp_path / "c.yaml")])
    assert shown.exit_code == 0
    assert "\x1b" not in shown.stdout
    assert "c[red]" in shown.stdout


def test_without_a_head_ones_own_runs_are_listed_and_the_reason_is_said(machine, monkeypatch, tmp_path):
    run = run_of_a()
    monkeypatch.setattr(LocalPool, "gone", True)
    (tmp_path / "c.yaml").write_text("")
    shown = CliRunner().invoke(app, ["runs", str(tmp_path / "c.yaml")])
    assert shown.exit_code == 0
    assert run in shown.stdout
    assert "Cannot read the runs of other operators: Cannot connect to head1: it is off" in shown.output


# More than the reader prints


def read(monkeypatch, capsys, tmp_path, limit, run=""):
    """What the reader prints of the cluster's journals, gathered."""
    monkeypatch.setattr(runs_reader, "LIMIT", limit)
    monkeypatch.setattr(
        "sys.argv", ["reader", str(tmp_path / "run"), str(tmp_path / "lib/runs"), "test", run]
    )
    runs_reader.main()
    journals = json.loads(capsys.readouterr().out)["journals"]
    return {name: gather(name, lines, lambda begin: False) for name, lines in journals.items()}


def long_run(number):
    """A run of many operations, the last of which did not end, and which put its worker back."""
    for _ in range(100):
        with contextlib.suppress(RunLocked):  # the holder of the run before this one is still ending
            return _long_run(number)
        time.sleep(0.1)
    return pytest.fail("the lock of the run before was not released")


def _long_run(number):
    journal = Journal("test", Path("/home/ada/c.yaml"), limit=None, roles=None)
    with HeadLock(CLUSTER, {"run": journal.run, **who()}, lost=pytest.fail) as lock:
        journal.mirror = lock.send
        with journal:
            journal.write("drain", nodes=["worker1"])
            for one in range(number):
                journal.write("start", node="worker1", role="base", name=f"Write {one}")
                if one < number - 1:
                    journal.write(
                        "finish", node="worker1", role="base", name=f"Write {one}", outcome="changed"
                    )
            journal.write("node", node="worker1", ok=False, changed=1, error="x")
            journal.write("resume", nodes=["worker1"])
    return journal.run


@pytest.mark.parametrize("share", [0, 0.5, 0.9, 1])
def test_of_a_run_that_is_too_long_the_first_operations_alone_are_left_out(
    machine, monkeypatch, capsys, tmp_path, share
):
    name = long_run(60)
    size = (tmp_path / "lib/runs/test" / f"{name}.jsonl").stat().st_size
    run = read(monkeypatch, capsys, tmp_path, int(size * share), name)[name]
    others = [event["event"] for event in run.events if event["event"] not in ("start", "finish")]
    assert others == ["begin", "drain", "node", "resume", "end"]
    assert (run.state, run.left_drained) == ("failed", [])
    names = [event["name"] for event in run.events if event["event"] == "start"]
    assert names == [f"Write {one}" for one in range(60 - len(names), 60)], "the latest"
    assert [event["name"] for event in run.open_operations] == names[-1:], "what ended is not taken for open"
    assert (bool(names), len(names) == 60) == (share > 0, share == 1)


def test_a_list_that_is_too_long_has_the_latest_runs_whole(machine, monkeypatch, capsys, tmp_path):
    names = sorted(long_run(2) for _ in range(3))
    one = sum(map(len, runs_reader.lines_of(f"{tmp_path}/lib/runs/test/{names[0]}.jsonl", whole=False)))
    for limit, number in ((0, 1), (one + one // 2, 1), (2 * one + one // 2, 2), (4 * one, 3)):
        found = read(monkeypatch, capsys, tmp_path, limit)
        assert sorted(found) == names[3 - number :]
        assert {run.state for run in found.values()} == {"failed"}


# What other runs left drained

RUN = "20261123T074215Z-0a1b2c"


@pytest.fixture
def manager(monkeypatch):
    found = MemoryManager(CLUSTER)
    found.nodes["worker1"].reason = f"rackwright: {RUN}"
    monkeypatch.setattr("rackwright.engine.left_drained.manager_of", lambda cluster, shell: found)
    return found


def put(good, roles=None, *, own="own", resumed=None):
    noted = []
    texts = put_back_all(
        CLUSTER, good, roles, own=own, resumed=resumed, noted=lambda *what: noted.append(what)
    )
    return texts, noted


def test_a_worker_that_a_run_of_another_machine_drained_is_put_back(manager):
    texts, noted = put(["worker1"])
    assert texts == [f"worker1: back in service, drained by run {RUN}"]
    assert noted == [(RUN, "resume", ["worker1"])], "the head's journal of that run is told"
    assert manager.nodes["worker1"].reason is None


def test_one_that_is_not_as_declared_is_named_and_left(manager):
    texts, noted = put(["worker2"])
    assert texts == [f"worker1: still drained by run {RUN}; see: rackwright runs {CLUSTER.path}"]
    assert noted == []
    assert manager.nodes["worker1"].reason is not None


def test_a_run_of_some_roles_puts_back_only_what_it_continues(manager):
    assert "still drained" in put(["worker1"], frozenset({"base"}))[0][0]
    assert "back in service" in put(["worker1"], frozenset({"base"}), resumed=RUN)[0][0]


def test_a_person_a_health_check_and_this_run_keep_their_drains(manager):
    manager.nodes["worker1"].reason = "bad DIMM"
    assert put(["worker1"]) == ([], [])
    manager.nodes["worker1"].reason = f"rackwright: {RUN}"
    assert put(["worker1"], own=RUN) == ([], [])
    assert manager.nodes["worker1"].reason is not None


def test_a_reason_that_names_a_path_writes_no_file(manager, tmp_path):
    """Whoever may drain a node chooses the text."""
    manager.nodes["worker1"].reason = "rackwright: ../../../../escape"
    assert put(["worker1"]) == ([], [])
    assert not list(tmp_path.rglob("*escape*"))


def test_a_manager_that_does_not_answer_is_no_reason_to_fail(manager):
    manager.silent = True
    assert put(["worker1"]) == ([], [])
