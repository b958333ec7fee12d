"""Entries of a journal as lines, whom they are trusted to be of, and which of them are wanted."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from rackwright.boundary import read_json, validated
from rackwright.logs.answer import answer
from rackwright.logs.entries import (
    MARK_UNIT,
    MESSAGE_MAX,
    NAME_MAX,
    Newest,
    Wanted,
    complaint,
    of_journal,
)
from rackwright.logs.report import ANSWER
from tests.unit.logs.journals import T0, entry, kernel

XID = "NVRM: Xid (PCI:0000:8b:00): 79, pid=4711, name=python3, GPU has fallen off the bus."


def line(fields, node="w1"):
    return of_journal(node, fields)


def wanted(**changes):
    request = {"nodes": ["w1", "w2", "head1"], "since": T0, "until": T0 + 1000, "lines": 100, **changes}
    return Wanted(request)


JOB = {
    "nodes": ["w1"],
    "servers": ["head1"],
    "units": ["slurmctld.service", "slurmd.service", "slurmstepd.scope"],
    "cgroup": r"/job_(?:7)(?:/|$)",
    "named": r"JobId=(?:7)(?![0-9_+])",
    "since": T0 + 10,
    "until": T0 + 50,
}


def test_an_entry_of_journalctl():
    found = line(
        entry(1.5, "hello", SYSLOG_IDENTIFIER="sshd", _SYSTEMD_UNIT="ssh.service", _CAP_EFFECTIVE="0")
    )
    assert found == {
        "node": "w1",
        "at": T0 + 1.5,
        "message": "hello",
        "name": "sshd",
        "pid": 7,
        "unit": "ssh.service",
        "priority": 6,
        "facility": 3,
        "kernel": False,
        "uid": 0,
        "trusted": True,
        "cgroup": None,
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"MESSAGE": [104, 195, 188, 255]}, "hü\ufffd"),
        ({"MESSAGE": ["first", "second"]}, "second"),
        ({"MESSAGE": "x" * 10_000}, "x" * MESSAGE_MAX),
    ],
)
def test_texts_that_journalctl_gives_otherwise(changes, message):
    assert line(entry(0, "", **changes))["message"] == message


def test_a_user_s_names_are_cut_to_what_an_answer_takes():
    """journald's own socket takes them of any length."""
    found = line(
        entry(0, "x", SYSLOG_IDENTIFIER="A" * 5000, _SYSTEMD_UNIT="B" * 5000, _SYSTEMD_CGROUP="C" * 5000)
    )
    assert [found[key] for key in ("name", "unit", "cgroup")] == [one * NAME_MAX for one in "ABC"]


@pytest.mark.parametrize(
    "changes", [{"MESSAGE": None}, {"MESSAGE": []}, {"MESSAGE": [300]}, {"__REALTIME_TIMESTAMP": "soon"}]
)
def test_what_is_no_line(changes):
    assert line(entry(0, "x", **changes)) is None


@pytest.mark.parametrize(
    ("fields", "trusted"),
    [
        ({"_UID": "0"}, True),
        ({"_UID": "3000"}, False),
        # sudo, or `unshare -Urm` and a bind mount
        ({"_UID": "3000", "_CAP_EFFECTIVE": "1ffffffffff", "_EXE": "/usr/bin/sudo"}, False),
        ({"_UID": "many"}, False),
    ],
)
def test_whom_a_line_is_trusted_to_be_of(fields, trusted):
    assert line(entry(0, "x", **fields))["trusted"] is trusted


def test_only_the_kernel_speaks_for_the_kernel():
    """A program can write into the kernel's log; its lines have the facility of users there."""
    assert line(kernel(0, XID))["kernel"] is True
    assert line(kernel(0, XID, SYSLOG_FACILITY="1"))["kernel"] is False
    forged = line(entry(0, XID, SYSLOG_IDENTIFIER="kernel", _UID="3000"))
    assert (forged["kernel"], forged["trusted"], complaint(forged)) == (False, False, None)


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (XID, {"kind": "xid", "device": "0000:8b:00", "code": 79}),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error",
            {"kind": "sxid", "device": "0000:c1:00.0", "code": 12028, "severity": "Non-fatal"},
        ),
        (
            "pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:01:00.0",
            {"kind": "aer_uncorrected", "device": "0000:01:00.0", "severity": "Fatal"},
        ),
        (
            "pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0",
            {"kind": "aer_corrected", "device": "0000:01:00.0"},
        ),
        ("usb 1-1: new high-speed USB device", None),
    ],
)
def test_complaints_of_the_kernel_in_fields(message, fields):
    assert complaint(line(kernel(0, message))) == fields


@pytest.mark.parametrize(
    ("request_", "fields", "takes"),
    [
        ({}, entry(1, "x"), True),
        ({}, entry(-1, "x"), False),
        ({}, entry(1001, "x"), False),
        ({"grep": "BUS"}, entry(1, "fallen off the bus"), True),
        ({"grep": "bus"}, entry(1, "fine"), False),
        ({"priority": 3}, entry(1, "x", PRIORITY="3"), True),
        ({"priority": 3}, entry(1, "x", PRIORITY="4"), False),
        ({"priority": 3}, entry(1, "x", PRIORITY=None), False),
        ({"unit": "ssh.service"}, entry(1, "x", _SYSTEMD_UNIT="ssh.service"), True),
        ({"unit": "ssh.service"}, entry(1, "x", _SYSTEMD_UNIT="cron.service"), False),
        ({"unit": "ssh.service"}, entry(1, "Started ssh.service.", _SYSTEMD_UNIT="init.scope"), True),
        (
            {"unit": "ssh.service"},
            entry(1, "Started ssh.service.", _SYSTEMD_UNIT="init.scope", _UID="3000"),
            False,
        ),
        ({"audit": True}, entry(1, "x", SYSLOG_FACILITY="10"), True),
        ({"audit": True}, entry(1, "x", SYSLOG_FACILITY="4"), True),
        ({"audit": True}, entry(1, "x", SYSLOG_FACILITY="3"), False),
        ({}, entry(1, "mark", _SYSTEMD_UNIT=MARK_UNIT), False),
        ({}, entry(1, f"Starting {MARK_UNIT}...", _SYSTEMD_UNIT="init.scope"), False),
        ({"unit": MARK_UNIT}, entry(1, "mark", _SYSTEMD_UNIT=MARK_UNIT), True),
    ],
)
def test_what_is_wanted(request_, fields, takes):
    assert wanted(**request_).takes(line(fields)) is takes


@pytest.mark.parametrize(
    ("node", "fields", "owns"),
    [
        (
            "w1",
            entry(1, "x", _SYSTEMD_CGROUP="/system.slice/slurmstepd.scope/job_7/step_0/user/task_0"),
            True,
        ),
        ("w1", entry(1, "x", _SYSTEMD_CGROUP="/system.slice/slurmstepd.scope/job_77/step_0"), False),
        ("w2", entry(1, "x", _SYSTEMD_CGROUP="/system.slice/slurmstepd.scope/job_7/step_0"), False),
        ("w1", kernel(20, XID), True),
        ("w1", kernel(5, XID), False),
        ("w1", kernel(51, XID), False),
        ("w2", kernel(20, XID), False),
        ("w1", entry(1, "launch JobId=7", _SYSTEMD_UNIT="slurmd.service"), True),
        ("w1", entry(1, "launch JobId=71", _SYSTEMD_UNIT="slurmd.service"), False),
        ("w2", entry(1, "launch JobId=7", _SYSTEMD_UNIT="slurmd.service"), False),
        ("head1", entry(1, "done JobId=7", _SYSTEMD_UNIT="slurmctld.service", _UID="64030"), True),
        ("w1", entry(1, "JobId=7", _SYSTEMD_UNIT="slurmstepd.scope", _UID="3000"), False),
        ("w1", entry(1, "JobId=7", _SYSTEMD_UNIT="cron.service"), False),
    ],
)
def test_what_is_of_a_job(node, fields, owns):
    assert wanted(job=JOB).takes(line(fields, node)) is owns


def test_a_job_that_waits_has_no_lines_of_the_kernel():
    assert wanted(job={**JOB, "since": None}).takes(line(kernel(20, XID))) is False


@pytest.mark.parametrize("order", [(5, 1, 4, 2, 3), (5, 4, 3, 2, 1)])
def test_the_newest_are_kept(order):
    """Stores are read backwards: that older ones were left out is known then as well."""
    newest = Newest(wanted(lines=3))
    for at in order:
        newest.add(line(entry(at, f"at {at}")))
    assert [one["message"] for one in newest.lines()] == ["at 3", "at 4", "at 5"]
    assert (newest.more, newest.floor) == (True, T0 + 2)


def test_as_many_as_were_asked_for_are_all():
    newest = Newest(wanted(lines=2))
    for at in (3, 2):
        newest.add(line(entry(at, f"at {at}")))
    newest.add(line(entry(-500, "not of the time")))
    assert (len(newest.lines()), newest.more) == (2, False)


def test_a_line_that_was_sent_twice_counts_once():
    newest = Newest(wanted())
    for _ in range(2):
        newest.add(line(entry(1, "x")))
    newest.add(line(entry(1, "x"), "w2"))
    assert [one["node"] for one in newest.lines()] == ["w2", "w1"]
    assert newest.more is False


@pytest.mark.parametrize("character", ["x", "\x1b", "ü", "😀"])
def test_an_answer_stays_of_a_size_that_the_control_node_takes(character):
    """JSON makes twelve bytes of some characters."""

    def read(store, reading):
        for at in range(5000):
            message = character * (MESSAGE_MAX - 9) + str(at)
            reading.newest_lines.add(line(entry(at / 10, message, SYSLOG_IDENTIFIER=character * NAME_MAX)))

    request = {"store": {}, "nodes": ["w1"], "since": T0, "until": T0 + 1000, "lines": 10_000, "seconds": 60}
    text = json.dumps(answer(request, read, lambda store, nodes: dict.fromkeys(nodes, T0)))
    found = validated(ANSWER, read_json(text))
    assert found.more
    assert found.lines[-1].at == T0 + 499.9
    assert len(text) > 10 * 2**20


def test_lines_that_were_pushed_out_take_no_memory():
    newest = Newest(wanted(lines=10))
    tracemalloc.start()
    for at in range(2000):
        newest.add(line(entry(at / 10, f"{at} " * 1000)))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 2**20


@pytest.mark.parametrize("request_", [{}, {"nodes": 3}, {"nodes": [], "since": "x", "until": 1, "lines": 1}])
def test_what_is_no_request(request_):
    with pytest.raises((KeyError, TypeError, ValueError)):
        Wanted(request_)
