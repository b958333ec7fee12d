"""The central journal's reader: which files it opens, what it leaves to journalctl, and the audit trail beside them."""

from __future__ import annotations

import io
import json

import pytest

from rackwright.logs import audit_files, read_journal
from rackwright.logs.answer import Unreadable, answer, main
from rackwright.logs.entries import of_journal
from rackwright.logs.journal_files import journal_files
from tests.unit.logs.journals import T0, entry, kernel


def ask(folder, **changes):
    request = {
        "store": folder.settings,
        "nodes": ["w1", "w2"],
        "since": T0,
        "until": T0 + 1000,
        "lines": 100,
        "seconds": 60,
        **changes,
    }
    return answer(request, read_journal.read, read_journal.last)


def messages(found):
    return [(one["node"], one["message"]) for one in found["lines"]]


def test_lines_of_several_nodes_by_time(folder):
    folder.write(1, [entry(1, "a"), entry(3, "c")])
    folder.write(2, [entry(2, "b"), entry(2000, "later")])
    folder.write(3, [entry(1, "of a node that was not asked for")])
    found = ask(folder)
    assert messages(found) == [("w1", "a"), ("w2", "b"), ("w1", "c")]
    assert found["newest"] == {"w1": T0 + 3, "w2": T0 + 2000}
    assert (found["problems"], found["more"]) == ([], False)


def test_a_node_s_lines_are_its_own_whatever_they_say(folder):
    folder.write(1, [entry(1, "x", _HOSTNAME="w2")])
    assert messages(ask(folder)) == [("w1", "x")]


def test_closed_files_are_read_where_they_overlap(folder):
    folder.write(1, [entry(-900, "long ago")], "@0-1-2")
    folder.write(1, [entry(-5, "before"), entry(5, "in it")], "@0-3-4")
    folder.write(1, [entry(10, "open")])
    folder.write(9, [entry(10, "of nobody that is known")])
    assert messages(ask(folder)) == [("w1", "in it"), ("w1", "open")]
    assert [word for call in folder.asked() for word in call if "@0-1-2" in word or "127.1.0.9" in word] == []


def test_a_node_without_lines(folder):
    folder.write(1, [])
    assert ask(folder)["newest"] == {"w1": None, "w2": None}


def test_what_journalctl_leaves_out(folder):
    lines = [
        entry(1, "a", _SYSTEMD_UNIT="ssh.service"),
        entry(2, "b", PRIORITY="3"),
        entry(3, "c", SYSLOG_FACILITY="10"),
        kernel(4, "d"),
    ]
    folder.write(1, lines)
    assert messages(ask(folder, unit="ssh.service")) == [("w1", "a")]
    assert messages(ask(folder, audit=True)) == [("w1", "c")]
    job = {
        "nodes": ["w1"],
        "servers": [],
        "units": ["u.service"],
        "cgroup": "x",
        "named": "y",
        "since": T0,
        "until": T0 + 9,
    }
    assert messages(ask(folder, job=job)) == [("w1", "d")]
    boot = f"_BOOT_ID={'b' * 32}"
    asked = [call[-5:] for call in folder.asked() if "+" in call]
    assert asked == [
        [boot, "_SYSTEMD_UNIT=ssh.service", "+", boot, "_SYSTEMD_UNIT=init.scope"],
        [boot, "SYSLOG_FACILITY=4", "+", boot, "SYSLOG_FACILITY=10"],
        [boot, "_TRANSPORT=kernel", "+", boot, "_SYSTEMD_UNIT=u.service"],
    ]
    ask(folder, priority=3)
    assert folder.asked()[-1][-2:] == [boot, "--priority=3"]


def test_a_file_that_cannot_be_opened_is_reported_and_hides_no_other(folder):
    path = folder.write(1, [entry(1, "a")], "@0-1-2")
    path.with_name(path.name + ".json").unlink()
    folder.write(1, [entry(2, "b")])
    found = ask(folder)
    why = f"Failed to open journal file {path}: Bad message"
    assert found["problems"] == [f"w1: cannot read all of {path.name}: {why}"]
    assert messages(found) == [("w1", "b")]


@pytest.mark.parametrize("narrowed", [{}, {"unit": "u.service"}])
def test_a_damaged_file_is_reported_and_read_as_far_as_it_can_be(folder, narrowed):
    """journalctl ends with 0 and prints no error, and with a match it skips the whole file."""
    fields = {"_SYSTEMD_UNIT": "u.service"}
    path = folder.write(1, [entry(1, "lost", **fields), entry(2, "left", **fields)], "@0-1-2")
    folder.damage(path)
    folder.write(1, [entry(3, "open", **fields)])
    found = ask(folder, **narrowed)
    assert messages(found) == [("w1", "left"), ("w1", "open")]
    why = "Entry item 1 is bad, skipping over it."
    assert found["problems"] == [f"w1: cannot read all of {path.name}: {why}"]


def test_a_file_that_is_closed_before_it_is_read_is_read(folder):
    folder.write(1, [entry(1, "a")])
    folder.rotate_before_reading(1, [entry(2, "b")])
    found = ask(folder)
    assert (messages(found), found["problems"]) == ([("w1", "a"), ("w1", "b")], [])


def test_damage_is_reported_when_not_all_was_read(folder):
    folder.damage(folder.write(1, [entry(at, f"line {at}") for at in range(9)]))
    assert ask(folder, lines=2)["problems"] == [
        "w1: cannot read all of remote-127.1.0.1.journal: Entry item 1 is bad, skipping over it."
    ]


def test_no_folder_is_no_answer(folder):
    for path in folder.path.iterdir():
        path.unlink()
    folder.path.rmdir()
    with pytest.raises(Unreadable, match=r"cannot read the central journal: .*No such file"):
        ask(folder)


def test_a_table_with_one_address_for_two_nodes_is_no_answer(folder):
    folder.sources.write_text('{"w1": 1, "w2": 1}')
    with pytest.raises(Unreadable, match="has the same number for two nodes"):
        ask(folder)


def test_out_of_time_is_said(folder):
    folder.write(1, [entry(1, "a")])
    found = ask(folder, seconds=-1)
    assert found["problems"] == ["not everything was read within -1 s: query fewer nodes or hours"]


def test_the_audit_trail_outlives_the_journal(folder):
    """What was copied counts once, also where the journal still has it."""
    old = of_journal("w1", entry(-40 * 86400, "Accepted publickey for ada", SYSLOG_FACILITY="4"))
    both = entry(5, "session opened", SYSLOG_FACILITY="10")
    audit_files.append(str(folder.audit), T0 - 40 * 86400, [audit_files.line_of(old)])
    entries = (of_journal(node, both) for node in ("w1", "head1"))
    audit_files.append(str(folder.audit), T0, [audit_files.line_of(one) for one in entries])
    audit_files.compress_closed(str(folder.audit), T0)
    folder.write(1, [both, entry(6, "not about logins")])
    found = ask(folder, audit=True, since=T0 - 50 * 86400)
    assert messages(found) == [("w1", "Accepted publickey for ada"), ("w1", "session opened")]


def test_what_an_earlier_release_copied_is_trusted_by_today_s_rule(folder):
    old = {**of_journal("w1", entry(5, "forged", SYSLOG_FACILITY="10", _UID="3000")), "trusted": True}
    audit_files.append(str(folder.audit), T0, [audit_files.line_of({**old, "name": "x" * 5000})])
    (line,) = ask(folder, audit=True)["lines"]
    assert (line["trusted"], len(line["name"])) == (False, 1024)


def test_the_audit_trail_is_read_for_as_long_as_was_asked(folder, monkeypatch):
    lines = [of_journal("w1", entry(at / 10, f"{at}", SYSLOG_FACILITY="10")) for at in range(1000)]
    audit_files.append(str(folder.audit), T0, [audit_files.line_of(one) for one in lines])
    clock = iter(range(10_000))
    monkeypatch.setattr("rackwright.logs.answer.time.monotonic", lambda: next(clock))
    found = ask(folder, audit=True, seconds=50)
    assert 0 < len(found["lines"]) <= 50
    assert found["problems"] == ["not everything was read within 50 s: query fewer nodes or hours"]


def test_an_audit_trail_that_cannot_be_read_is_said(folder):
    folder.audit.joinpath("2026-11-27.jsonl.gz").write_bytes(b"\x1f\x8bnot gzip")
    assert "cannot read all of" in ask(folder, audit=True)["problems"][0]
    settings = {**folder.settings, "audit": str(folder.audit / "gone")}
    assert "cannot read " in ask(folder, audit=True, store=settings)["problems"][0]


def test_the_program_answers_on_standard_output(folder, monkeypatch, capsys):
    folder.write(1, [entry(1, "a")])
    request = {
        "store": folder.settings,
        "nodes": ["w1"],
        "since": T0,
        "until": T0 + 9,
        "lines": 9,
        "seconds": 9,
    }
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(request)))
    main(read_journal.read, read_journal.last)
    assert json.loads(capsys.readouterr().out)["lines"][0]["message"] == "a"
    monkeypatch.setattr(
        "sys.stdin", io.StringIO(json.dumps({**request, "store": {**folder.settings, "folder": "/no"}}))
    )
    main(read_journal.read, read_journal.last)
    assert json.loads(capsys.readouterr().out)["unreadable"].startswith("cannot read the central journal")


def test_files_of_the_folder(folder):
    folder.write(1, [entry(1, "a")])
    folder.write(1, [entry(0, "a")], "@f9d4542ae8644da3a10efaa25a931cbf-0000000000000001-00066137907f7ca4")
    damaged = folder.path / "remote-127.1.0.2.journal~"
    damaged.write_bytes(b"LPKSHHRH")
    for name in ("remote-10.0.0.1.journal", "remote-127.1.0.1.journal.json", "other"):
        folder.path.joinpath(name).write_text("")
    found = journal_files(str(folder.path), str(folder.sources))
    assert {node: [one.archived for one in files] for node, files in found.items()} == {
        "w1": [False, True],
        "w2": [True],
    }
    assert found["w2"][0].times() is None
    assert found["w1"][0].times() == (T0 + 1, T0 + 1)
