"""rackwright logs as people run it: what it asks for, how lines look, and its exit status."""

from __future__ import annotations

import json
import time

import pytest

from rackwright.cli import logs as command
from rackwright.errors import RackwrightError
from rackwright.logs.report import Line, LogsReport
from tests.unit.clusterfile.base_file import change

NOW = 1_795_741_200.0


@pytest.fixture
def asked(monkeypatch):
    """Each question, answered with `asked.reply`."""

    class Asked(list):
        reply = LogsReport("demo", "journal", "h1", NOW - 60, NOW)

    found = Asked()

    def read_logs(cluster, question, shell):
        found.append(question)
        if isinstance(found.reply, Exception):
            raise found.reply
        return found.reply

    monkeypatch.setattr(command, "read_logs", read_logs)
    monkeypatch.setattr(time, "time", lambda: NOW)
    return found


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "demo.yaml"
    path.write_text(change())
    return path


def report(*lines, unknown=(), more=False):
    found = tuple(Line(**line) for line in lines)
    return LogsReport("demo", "journal", "h1", NOW - 60, NOW, found, more, {"w1": NOW}, unknown)


def test_lines_as_people_read_them(rackwright, asked, file):
    asked.reply = report(
        {"node": "w1", "at": NOW - 2.4, "message": "hello", "name": "sshd", "pid": 7},
        {
            "node": "w2",
            "at": NOW,
            "message": "NVRM: Xid",
            "name": "kernel",
            "kernel": True,
            "priority": 2,
            "fields": {"kind": "xid", "device": "0000:8b:00", "code": 79},
        },
        {
            "node": "w2",
            "at": NOW,
            "message": "Accepted",
            "name": "sshd",
            "uid": 3000,
            "trusted": False,
            "facility": 10,
        },
        {"node": "w2", "at": NOW, "message": "x", "unit": "a.service"},
    )
    result = rackwright("logs", file)
    assert (result.status, result.err) == (0, "")
    assert result.out.splitlines() == [
        "2026-11-27 00:59:57 w1 sshd[7]: hello",
        "2026-11-27 01:00:00 w2 kernel: NVRM: Xid  [kind xid, device 0000:8b:00, code 79]",
        "2026-11-27 01:00:00 w2 sshd: Accepted  [uid 3000 wrote it]",
        "2026-11-27 01:00:00 w2 a.service: x",
    ]


def test_what_a_node_wrote_moves_no_cursor(rackwright, asked, file):
    asked.reply = report({"node": "w1", "at": NOW, "message": "a\x1b[2J\nsecond [red]line", "name": "\x07"})
    out = rackwright("logs", file).out
    assert out == "2026-11-27 01:00:00 w1 \\x07: a\\x1b[2J\n    second [red]line\n"


def test_what_is_asked(rackwright, asked, file):
    given = ("--node", "w[1-2]", "--job", "7", "--unit", "slurmd", "--since", "2h", "--until", "00:30")
    given += ("--grep", "xid", "--priority", "err", "--audit", "--lines", "5")
    assert rackwright("logs", file, *given).status == 0
    (question,) = asked
    assert question == command.LogQuery(
        since=NOW - 7200,
        until=NOW - 1800,
        nodes="w[1-2]",
        job="7",
        unit="slurmd.service",
        grep="xid",
        priority=3,
        audit=True,
        lines=5,
    )
    rackwright("logs", file, "--unit", "user@1000.service", "--priority", "4")
    assert (asked[-1].unit, asked[-1].priority, asked[-1].since) == ("user@1000.service", 4, None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--since", "soon"), "soon is not a valid time."),
        (("--unit", "a b"), "a b is not the name of a unit."),
        (("--priority", "loud"), "loud is not a priority."),
        (("--priority", "8"), "8 is not a priority."),
        (("--follow", "--json"), "--follow has no end: leave out --json."),
        (("--follow", "--until", "1h"), "--follow has no end: leave out --until."),
    ],
)
def test_what_cannot_be_asked(rackwright, asked, file, given, said):
    result = rackwright("logs", file, *given)
    assert (result.status, result.err.splitlines()[0]) == (1, f"error: {said}")
    assert asked == []


def test_what_is_not_known_is_said_and_decides(rackwright, asked, file):
    asked.reply = report(unknown=("h1 has no line of w2",))
    result = rackwright("logs", file)
    assert result.status == 4
    assert result.err.splitlines() == [
        "no matching line in the journal store on h1",
        "UNKNOWN h1 has no line of w2",
    ]


def test_older_lines_that_were_left_out(rackwright, asked, file):
    asked.reply = report({"node": "w1", "at": NOW, "message": "x"}, more=True)
    result = rackwright("logs", file)
    assert (result.status, result.err) == (
        0,
        "older lines were left out; the newest 1 are shown: --lines, or ask for less\n",
    )


def test_the_json_document(rackwright, asked, file):
    asked.reply = report({"node": "w1", "at": NOW, "message": "x\x1b", "pid": 7}, unknown=("why",))
    result = rackwright("logs", file, "--json")
    assert result.status == 4
    document = json.loads(result.out)
    assert document["lines"] == [{"node": "w1", "at": NOW, "message": "x\x1b", "pid": 7}]
    assert (document["unknown"], document["newest"], document["version"]) == (["why"], {"w1": NOW}, 1)
    assert "\x1b" not in result.out


def test_errors_have_a_hint(rackwright, asked, file):
    asked.reply = RackwrightError("No central place.", hint="add the role")
    result = rackwright("logs", file)
    assert (result.status, result.err) == (1, "error: No central place.\nhint: add the role\n")


def test_a_file_without_the_role_says_so(rackwright, file):
    result = rackwright("logs", file)
    assert result.status == 1
    assert "declares no central log store" in result.err
