"""What the control node asks a store's reader, and what it makes of the answer, whoever gave it."""

from __future__ import annotations

import json
import re
import shlex
import time

import pytest

from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed, RackwrightError, WorkloadError
from rackwright.logs.ask import READERS, LogQuery, read_logs
from rackwright.logs.report import LINES_MAX
from rackwright.model.logs import KeepsLogs, LogStore
from rackwright.model.options import RoleOptions
from rackwright.model.types import NodeRole
from rackwright.node_programs import sources
from rackwright.workload.protocol import JobTrace
from tests.factories import make_cluster, make_node

NOW = 1_795_741_200.0


class Keeps(RoleOptions, KeepsLogs):
    """A role that keeps logs, and is not ours."""

    kind: str = "journal"

    def log_store(self, cluster):
        return LogStore(self.kind, "head1", {"folder": "/j"}, 14, 90)


def site(kind="journal"):
    options = {"any": Keeps(kind=kind)}
    nodes = [make_node("head1", 10, NodeRole.HEAD, options=options)]
    return make_cluster(*nodes, *(make_node(f"w{n}", 10 + n, options=options) for n in (1, 2, 3)))


class Shell:
    """A head on which the reader prints this."""

    def __init__(self, said=None, *, exit_status=0, stderr="", newest=NOW - 5, error=None, **more) -> None:
        self.said, self.exit_status, self.stderr, self.newest, self.error = (
            said,
            exit_status,
            stderr,
            newest,
            error,
        )
        self.more, self.asked = more, []

    def run(self, node, command, *, stdin=None, timeout):
        if self.error is not None:
            raise self.error
        length = int(re.search(r" (\d+)$", command)[1])
        request = json.loads(stdin[length:])
        self.asked.append((node, request))
        newest = dict.fromkeys(request["nodes"], self.newest)
        document = {
            "version": 1,
            "now": NOW,
            "lines": [],
            "more": False,
            "newest": newest,
            "problems": [],
            **self.more,
        }
        text = json.dumps(document) if self.said is None else self.said
        return CommandResult(command, self.exit_status, text, self.stderr)


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: NOW)


TRACE = JobTrace(
    id="7",
    nodes=("w1", "w2"),
    strangers=(),
    servers=("head1",),
    submitted=NOW - 500,
    started=NOW - 400,
    ended=NOW - 300,
    units=("slurmd.service",),
    cgroup="/job_7",
    named="JobId=7",
)


@pytest.fixture
def manager(monkeypatch):
    class Manager:
        found = TRACE

        def trace(self, job):
            if isinstance(self.found, Exception):
                raise self.found
            return self.found

    made = Manager()
    monkeypatch.setattr("rackwright.logs.ask.manager_of", lambda cluster, shell: made)
    return made


def line(node, at, message="x", **more):
    return {"node": node, "at": at, "message": message, **more}


def test_a_day_of_all_nodes_is_asked_for():
    shell = Shell(lines=[line("w1", NOW - 1), line("head1", NOW - 2)])
    report = read_logs(site(), LogQuery(), shell)
    assert [one.node for one in report.lines] == ["head1", "w1"]
    assert report.unknown == ()
    ((node, request),) = shell.asked
    assert node == "head1"
    assert request == {
        "store": {"folder": "/j"},
        "nodes": ["head1", "w1", "w2", "w3"],
        "since": NOW - 86400,
        "until": NOW + 60,
        "unit": None,
        "grep": None,
        "priority": None,
        "audit": False,
        "lines": 1000,
        "seconds": 60,
        "job": None,
    }


def test_the_question_travels():
    shell = Shell()
    question = LogQuery(
        since=NOW - 60,
        until=NOW - 30,
        nodes="w[1-2]",
        unit="a.service",
        grep="b",
        priority=3,
        audit=True,
        lines=5,
    )
    read_logs(site(), question, shell)
    request = shell.asked[0][1]
    assert {
        key: request[key] for key in ("nodes", "since", "until", "unit", "grep", "priority", "audit", "lines")
    } == {
        "nodes": ["w1", "w2"],
        "since": NOW - 60,
        "until": NOW - 30,
        "unit": "a.service",
        "grep": "b",
        "priority": 3,
        "audit": True,
        "lines": 5,
    }


def test_a_job_s_nodes_and_time(manager):
    shell = Shell()
    report = read_logs(site(), LogQuery(job="7"), shell)
    request = shell.asked[0][1]
    assert request["nodes"] == ["head1", "w1", "w2"]
    assert (request["since"], request["until"]) == (NOW - 560, NOW - 180)
    assert request["job"] == {
        "nodes": ["w1", "w2"],
        "servers": ["head1"],
        "units": ["slurmd.service"],
        "cgroup": "/job_7",
        "named": "JobId=7",
        "since": NOW - 460,
        "until": NOW - 180,
    }
    assert report.to_json()["job"]["ended"] == NOW - 300


def test_a_job_whose_trace_is_known_costs_the_workload_manager_nothing(manager):
    manager.found = WorkloadError("not asked")
    assert read_logs(site(), LogQuery(job="7"), Shell(), TRACE).trace == TRACE


def test_a_job_on_some_of_its_nodes(manager):
    shell = Shell()
    read_logs(site(), LogQuery(job="7", nodes="w[2-3]"), shell)
    assert shell.asked[0][1]["nodes"] == ["w2"]
    with pytest.raises(RackwrightError, match=r"Job 7 did not run on w3\.") as refused:
        read_logs(site(), LogQuery(job="7", nodes="w3"), shell)
    assert refused.value.hint == "its nodes are head1,w[1-2]"


def test_a_job_that_runs_has_no_end_and_strangers_are_said(manager):
    manager.found = JobTrace(**{**TRACE.__dict__, "ended": None, "strangers": ("x9",)})
    shell = Shell()
    report = read_logs(site(), LogQuery(job="7"), shell)
    assert shell.asked[0][1]["job"]["until"] == NOW + 60
    assert report.unknown == ("the cluster file does not declare x9, where job 7 ran",)


def test_a_job_nobody_knows(manager):
    manager.found = WorkloadError("Slurm on head1 does not know job 7.")
    with pytest.raises(WorkloadError):
        read_logs(site(), LogQuery(job="7"), Shell())


def test_a_cluster_without_a_workload_manager():
    with pytest.raises(RackwrightError, match="declares no workload manager to look up job 7"):
        read_logs(site(), LogQuery(job="7"), Shell())


def test_a_cluster_without_logs():
    with pytest.raises(RackwrightError, match="declares no central log store") as refused:
        read_logs(make_cluster(), LogQuery(), Shell())
    assert "logs: {}" in refused.value.hint


def test_times_that_exclude_each_other():
    with pytest.raises(RackwrightError, match="is later than --until"):
        read_logs(site(), LogQuery(since=NOW, until=NOW - 1), Shell())


@pytest.mark.parametrize(
    ("kind", "newest", "until", "unknown"),
    [
        ("journal", {"w1": None, "w2": None}, None, ["head1 has no line of w[1-2]"]),
        ("search", {"w1": None}, None, ["the search cluster has no line of w1"]),
        (
            "journal",
            {"w2": NOW - 7300},
            None,
            ["the newest line of w2 is 2 h old: later ones have not reached head1"],
        ),
        (
            "journal",
            {"w2": NOW - 1500},
            None,
            ["the newest line of w2 is 25 min old: later ones have not reached head1"],
        ),
        ("journal", {"w2": NOW - 7300}, NOW - 7200, []),
        ("journal", {"w2": NOW - 1100}, None, []),
        (
            "journal",
            {"w2": NOW - 4 * 86400},
            None,
            ["the newest line of w2 is 4 d old: later ones have not reached head1"],
        ),
    ],
)
def test_lines_that_are_missing_or_late(kind, newest, until, unknown):
    everyone = dict.fromkeys(("head1", "w1", "w2", "w3"), NOW)
    shell = Shell(newest=None)
    shell.more = {"newest": {**everyone, **newest}}
    report = read_logs(site(kind), LogQuery(since=NOW - 86400, until=until), shell)
    assert list(report.unknown) == unknown


def test_problems_of_the_reader_are_not_known():
    report = read_logs(site(), LogQuery(), Shell(problems=["w1: a file is \x1b[2J damaged"]))
    assert report.unknown == ("w1: a file is \\x1b[2J damaged",)


def test_lines_of_nodes_that_were_not_asked_for_are_dropped():
    report = read_logs(
        site(), LogQuery(nodes="w1"), Shell(lines=[line("w2", NOW), line("w1", NOW), line("evil", NOW)])
    )
    assert [one.node for one in report.lines] == ["w1"]


@pytest.mark.parametrize(
    ("shell", "said"),
    [
        (
            Shell(error=ConnectionFailed("Cannot connect to head1.")),
            "log store on head1 is unreachable: Cannot",
        ),
        (
            Shell("", exit_status=127, stderr="python3: not found"),
            "the reader of its logs exited 127: python3: not found",
        ),
        (Shell("{"), "the log reader's answer is invalid: it is not valid JSON"),
        (Shell(json.dumps({"version": 1, "unreadable": "no\x07 folder"})), r"head1: no\\x07 folder"),
        (Shell(json.dumps({"version": 1})), "is invalid: now"),
        (Shell(lines=[line("w1", -1)]), "is invalid: lines.0.at"),
        (Shell(lines=[line("w1", 1, "x" * 5000)]), "is invalid: lines.0.message"),
        (Shell(lines=[line("w1", 1, pid="7")]), "is invalid: lines.0.pid"),
        (Shell(lines=[line("w1", NOW)] * (LINES_MAX + 1)), "is invalid: lines"),
    ],
)
def test_answers_that_are_none(shell, said):
    with pytest.raises(RackwrightError, match=said):
        read_logs(site(), LogQuery(), shell)


@pytest.mark.parametrize("kind", READERS)
def test_every_reader_is_sent_whole_and_run_as_such(kind):
    """It is `__main__` there, and what it imports travels with it."""
    shell = Shell()
    read_logs(site(kind), LogQuery(), shell)
    assert 'if __name__ == "__main__":' in sources(READERS[kind])[READERS[kind]]
    assert {name.split(".")[1] for name in sources(READERS[kind]) if "." in name} == {"health", "logs"}


def test_the_command_ends_in_time():
    class Recording(Shell):
        def run(self, node, command, *, stdin=None, timeout):
            self.command, self.timeout = shlex.split(command), timeout
            return super().run(node, command, stdin=stdin, timeout=timeout)

    shell = Recording()
    read_logs(site(), LogQuery(), shell)
    assert shell.command[:4] == ["timeout", "-k", "1", "80"]
    assert shell.timeout == 90
