"""rackwright logs --follow: new lines and new doubts, once each, through lost connections, until the job has ended."""

from __future__ import annotations

import time

import pytest

from rackwright.cli import logs, logs_follow
from rackwright.errors import ConnectionFailed, WorkloadError
from rackwright.logs.report import Line, LogsReport
from rackwright.workload.protocol import JobTrace
from tests.unit.clusterfile.base_file import change

NOW = 1_795_741_200.0
FIRST = {"node": "w1", "at": NOW - 1, "message": "first"}


def trace(ended=None):
    return JobTrace("7", ("w1",), (), ("h1",), NOW - 500, NOW - 400, ended, (), "x", "y")


def report(*lines, unknown=(), more=False, job=None, since=NOW - 86400):
    found = tuple(Line(**line) for line in lines)
    return LogsReport("demo", "journal", "h1", since, NOW, found, more, {"w1": NOW}, unknown, job)


class Follows:
    """A run of the command with an answer, or an error, for each time that it asks; then Ctrl-C."""

    def __init__(self, rackwright, file) -> None:
        self._rackwright, self._file = rackwright, file
        self.now = NOW
        self.asked, self.traces, self.traced = [], [], []
        self.replies = []

    def __call__(self, *replies, options=()):
        self.replies = list(replies)
        return self._rackwright("logs", self._file, "--follow", *options)

    def read_logs(self, cluster, question, shell, trace=None):
        self.asked.append((question, trace))
        if not self.replies:
            raise KeyboardInterrupt
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def trace_of(self, cluster, job, shell):
        self.traced.append(self.now - NOW)
        found = self.traces.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def follow(rackwright, tmp_path, monkeypatch):
    path = tmp_path / "demo.yaml"
    path.write_text(change())
    made = Follows(rackwright, path)
    monkeypatch.setattr(logs, "read_logs", made.read_logs)
    monkeypatch.setattr(logs_follow, "read_logs", made.read_logs)
    monkeypatch.setattr(logs_follow, "trace_of", made.trace_of)
    monkeypatch.setattr(time, "time", lambda: made.now)
    monkeypatch.setattr(time, "sleep", made.sleep)
    return made


def texts(result):
    return [line.rpartition(": ")[2] for line in result.out.splitlines()]


def test_each_line_is_shown_once(follow):
    late = {"node": "w2", "at": NOW - 2, "message": "late"}
    result = follow(report(FIRST), report(late, FIRST), report(late, FIRST), options=("--grep", "t"))
    assert (result.status, texts(result)) == (130, ["first", "late"])
    question, _ = follow.asked[1]
    assert (question.since, question.until, question.grep) == (NOW - 300, None, "t")


@pytest.mark.parametrize("first", [report(FIRST, since=NOW - 1), report(FIRST, more=True)])
def test_what_was_left_out_at_first_stays_left_out(follow, first):
    """By --since or --lines."""
    follow(first, report(FIRST))
    assert follow.asked[1][0].since == NOW - 1


def test_a_job_that_has_ended_ends_it(follow):
    result = follow(report(FIRST, job=trace(NOW - 600)), options=("--job", "7"))
    assert (result.status, texts(result)) == (0, ["first"])
    assert result.err.splitlines() == ["job 7 has ended"]


def test_a_job_is_followed_to_its_last_lines(follow):
    """The workload manager is asked about it once a minute, and no more once it has ended."""
    follow.traces = [trace(), trace(NOW + 70)]
    result = follow(*[report(FIRST, job=trace())] * 400, options=("--job", "7"))
    assert (result.status, texts(result), follow.traced) == (0, ["first"], [60, 120])
    assert {one for _, one in follow.asked[1:]} == {trace(), trace(NOW + 70)}
    assert NOW + 250 < follow.now < NOW + 256


def test_a_workload_manager_that_does_not_answer_ends_nothing(follow):
    follow.traces = [WorkloadError("sacct: Connection refused."), trace(NOW + 1)]
    result = follow(*[report(FIRST, job=trace())] * 400, options=("--job", "7"))
    assert result.status == 0
    assert result.err.splitlines() == [
        "sacct: Connection refused. Trying again; Ctrl-C ends this.",
        "job 7 has ended",
    ]


def test_doubts_are_shown_when_they_change(follow):
    old, older = (f"the newest line of w2 is {age} min old: later ones" for age in (20, 21))
    result = follow(
        report(FIRST),
        report(FIRST, unknown=(old,)),
        report(FIRST, unknown=(older,)),
        report(FIRST, unknown=(older, "w1: a file is damaged"), more=True),
        report(FIRST),
        report(FIRST, unknown=(old,)),
    )
    assert result.err.splitlines()[:4] == [
        f"UNKNOWN {old}",
        "more than 10000 new lines: older ones were left out; ask for less",
        "UNKNOWN w1: a file is damaged",
        f"UNKNOWN {old}",
    ]


def test_the_last_answer_decides(follow):
    job = trace(NOW - 179)  # its last lines may still arrive
    result = follow(report(job=job), report(unknown=("w1: a file is damaged",)), options=("--job", "7"))
    assert result.status == 4


def test_a_lost_connection_ends_nothing_and_costs_no_lines(follow):
    lost = ConnectionFailed("head1 cannot be reached.")
    again = {"node": "w1", "at": NOW + 1, "message": "again"}
    result = follow(report(FIRST), report(FIRST), *[lost] * 300, report(FIRST, again), lost)
    assert (result.status, texts(result)) == (130, ["first", "again"])
    notice = "head1 cannot be reached. Trying again; Ctrl-C ends this."
    assert [line for line in result.err.splitlines() if line == notice] == [notice] * 2
    assert follow.asked[302][0].since == NOW + 2 - 300
