"""The journal: what its lines add up to, also torn, damaged and written by several processes."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import stat

import pytest

from rackwright.bmc.interface import BmcIdentity
from rackwright.errors import InstallError
from rackwright.install import record as module
from rackwright.install.record import Journal, Record, folder, read
from rackwright.install.states import State
from rackwright.install.tokens import digest, new_token
from tests.unit.install.site import GPT


@pytest.fixture
def journal():
    return Journal("test", "worker1")


def path():
    return folder("test") / "worker1.jsonl"


def begin(journal, run="r1", mode="install", **data):
    journal.move(State.PRECHECKED, "", run=run, mode=mode, serial="SN-1", **data)


def hold(journal, run="r1"):
    begin(journal, run)
    journal.move(State.ARMED, "", token=digest("token"), token_until=1.0e12, media="/media/x.iso")
    journal.move(State.DISCOVERED, "", token="", session=digest("session"))
    journal.move(State.INVENTORIED, "", inventory={"version": 1})
    journal.move(State.HELD, "disk D holds gpt", held={"D": [GPT]})


def finish(journal, run="r1"):
    hold(journal, run)
    journal.move(State.INVENTORIED)
    journal.move(State.APPROVED, "", held={})
    journal.move(State.INSTALLING, "", image="abc", phase="partition", percent=0)
    journal.move(State.INSTALLED, "", host_key="ssh-ed25519 AAAA", session="", confirmed={}, percent=100)
    journal.move(State.FIRST_BOOT)
    journal.move(State.READY, "ssh")


def test_a_node_without_a_journal_is_declared(journal):
    assert journal.record == read("test", "worker1")
    assert (journal.record.state, journal.record.was_ready, journal.record.stands) == (
        State.DECLARED,
        False,
        False,
    )
    assert not path().exists()


def test_the_record_is_what_the_lines_add_up_to(journal):
    hold(journal)
    journal.note(phase="image", percent=40)
    found = read("test", "worker1")
    assert found == journal.record == Journal("test", "worker1").record
    assert (found.state, found.run, found.mode, found.serial) == (State.HELD, "r1", "install", "SN-1")
    assert (found.reason, found.media, found.held) == ("disk D holds gpt", "/media/x.iso", {"D": (GPT,)})
    assert (found.phase, found.percent, found.token, found.session) == ("image", 40, "", digest("session"))


def test_a_record_stays_as_it_was_read(journal):
    """One thread reads it while another one changes it."""
    begin(journal)
    before = journal.record
    journal.move(State.FAILED, "no power")
    assert (before.state, journal.record.state, journal.record.reason) == (
        State.PRECHECKED,
        State.FAILED,
        "no power",
    )


def test_a_state_that_may_not_follow_is_refused_and_not_written(journal):
    begin(journal)
    size = path().stat().st_size
    with pytest.raises(InstallError, match=r"worker1 cannot go from prechecked to installing\."):
        journal.move(State.INSTALLING)
    assert path().stat().st_size == size


def test_what_was_ready_stays_so_whatever_becomes_of_it(journal):
    finish(journal)
    assert journal.record.was_ready
    assert journal.record.stands
    hold(journal, "r2")
    assert journal.record.was_ready
    assert journal.record.stands, "it is held: nothing was written"
    journal.move(State.INVENTORIED)
    journal.move(State.APPROVED)
    journal.move(State.INSTALLING)
    journal.move(State.FAILED, "no power")
    assert read("test", "worker1").was_ready
    assert not read("test", "worker1").stands, "half of its disk is written"


def test_a_discovery_leaves_what_stands(journal):
    finish(journal)
    begin(journal, "r2", "discover")
    assert read("test", "worker1").stands


def test_confirmations_die_with_their_run(journal):
    hold(journal)
    journal.note(confirm={"D": [GPT]}, of="r1")
    assert journal.record.confirmed == {"D": (GPT,)}
    begin(journal, "r2")
    assert read("test", "worker1").confirmed == journal.record.confirmed == {}


def test_and_with_its_failure(journal):
    hold(journal)
    journal.note(confirm={"D": [GPT]}, of="r1")
    journal.move(State.FAILED)
    found = read("test", "worker1")
    assert (found.confirmed, found.held, found.token, found.session) == ({}, {}, "", "")


def test_a_confirmation_that_comes_late_does_not_count_for_the_next_run(journal):
    """The operator typed it for run r1; another process had begun r2 when the line was written."""
    hold(journal)
    hold(journal, "r2")
    Journal("test", "worker1").note(confirm={"D": [GPT]}, of="r1")
    assert journal.record.confirmed == read("test", "worker1").confirmed == {}


def test_nor_one_without_its_run_or_after_the_failure(journal):
    hold(journal)
    journal.move(State.FAILED)
    journal.note(confirm={"D": [GPT]}, of="r1")
    assert journal.record.confirmed == {}
    path().write_bytes(path().read_bytes() + b'{"at":1,"confirm":{"D":["x"]}}\n')
    assert read("test", "worker1").confirmed == {}


def test_two_processes_confirm_two_disks(journal):
    """Each knew of no other: neither confirmation is lost."""
    hold(journal)
    journal.note(confirm={"D": [GPT]}, of="r1")
    Journal("test", "worker1").note(confirm={"E": ["y"]}, of="r1")
    assert journal.record.confirmed == {"D": (GPT,), "E": ("y",)}


def test_what_another_process_notes_is_seen(journal):
    hold(journal)
    assert journal.record.phase == ""
    Journal("test", "worker1").note(phase="image")
    assert journal.record.phase == "image"
    journal.note(percent=7)
    Journal("test", "worker1").note(percent=8)
    with journal.changing() as found:
        assert (found.phase, found.percent) == ("image", 8)


def test_a_line_that_was_torn_has_no_effect_and_those_after_it_have(journal):
    begin(journal)
    with path().open("ab") as file:
        file.write(b'{"at":5,"state":"arm')
    journal.move(State.ARMED, "", token="t", token_until=5.0)
    found = read("test", "worker1")
    assert (found.state, found.token) == (State.ARMED, "t")
    assert path().read_bytes().count(b"\n") == 3
    assert journal.record == found


DAMAGE = [
    b"{",
    b"\0" * 80,
    b"[]",
    b"7",
    b'"state"',
    b'{"state":"odd","at":1}',
    b'{"state":"ready"}',
    b"\xff\xfe",
    b'{"held":7}',
]


@pytest.mark.parametrize("line", DAMAGE)
def test_a_damaged_line_may_have_said_that_the_node_was_ready(journal, line):
    begin(journal)
    assert not read("test", "worker1").was_ready
    path().write_bytes(path().read_bytes() + line + b"\n")
    assert read("test", "worker1").was_ready
    assert journal.record.was_ready
    begin(journal, "r2")
    assert read("test", "worker1").was_ready


@pytest.mark.parametrize("line", DAMAGE)
def test_or_that_the_run_had_ended_and_the_token_was_spent(journal, line):
    hold(journal)
    journal.note(confirm={"D": [GPT]}, of="r1", token=digest("token"))
    path().write_bytes(path().read_bytes() + line + b"\n")
    found = read("test", "worker1")
    assert (found.confirmed, found.held, found.token, found.stands) == ({}, {}, "", False)


def _try_to_claim(answers):
    try:
        with Journal("test", "worker1").claim():
            answers.put("claimed")
    except InstallError as error:
        answers.put((error.message, error.hint))


def test_a_node_is_installed_by_one_process(journal):
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    with journal.claim():
        other = context.Process(target=_try_to_claim, args=(answers,))
        other.start()
        other.join(20)
        message, hint = answers.get()
    assert message.startswith(f"Another process (pid {os.getpid()} on ")
    assert hint == "wait for it, or stop it and run again: the installation resumes where it was"
    with journal.claim():
        pass


def test_two_installations_of_a_node_in_one_process(journal):
    with (
        journal.claim(),
        pytest.raises(InstallError, match="Another process"),
        Journal("test", "worker1").claim(),
    ):
        pass
    with Journal("test", "worker2").claim(), journal.claim():
        pass


def test_a_line_is_on_disk_before_anything_is_done_because_of_it(journal, monkeypatch):
    order, real = [], os.fsync

    def fsync(handle):
        found = os.fstat(handle)
        order.append("folder" if stat.S_ISDIR(found.st_mode) else ("file", found.st_size))
        real(handle)

    monkeypatch.setattr(module.os, "fsync", fsync)
    begin(journal)
    assert order == [("file", path().stat().st_size), "folder"], "a new file is there when its folder is"
    journal.move(State.ARMED)
    assert order[2:] == [("file", path().stat().st_size)]


def test_a_full_disk_is_no_state(journal, monkeypatch):
    begin(journal)
    with monkeypatch.context() as patched:
        patched.setattr(module.os, "write", lambda handle, line: len(line) // 2)
        with pytest.raises(OSError, match="full") as failed:
            journal.move(State.ARMED)
    assert failed.value.errno == errno.ENOSPC
    assert journal.record.state is State.PRECHECKED


def test_which_machine_the_last_run_worked_on():
    mine = Record("worker1", serial="SN-1", uuid="u")
    assert mine.is_of(BmcIdentity(serial="SN-1"))
    for other in (
        BmcIdentity(),
        BmcIdentity(serial="SN-2", uuid="u"),
        BmcIdentity(uuid="u"),
        BmcIdentity(serial=""),
    ):
        assert not mine.is_of(other)
    nameless = Record("worker1", uuid="u")
    assert nameless.is_of(BmcIdentity(uuid="u"))
    assert not nameless.is_of(BmcIdentity())
    assert not Record("worker1").is_of(BmcIdentity())


def test_the_file_is_for_its_owner_alone_and_holds_no_token(journal):
    token, session = new_token(), new_token()
    begin(journal)
    journal.move(State.ARMED, "", token=digest(token))
    journal.move(State.DISCOVERED, "", token="", session=digest(session))
    text = path().read_text()
    assert token not in text
    assert session not in text
    assert stat.S_IMODE(path().stat().st_mode) == 0o600
    assert stat.S_IMODE(path().parent.stat().st_mode) == 0o700
    assert all(json.loads(line)["at"] > 1.7e9 for line in text.splitlines())
