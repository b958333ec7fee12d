"""The lock on a head: who has it, when it ends, what a lost connection costs, and the journals kept beside it."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from rackwright.engine import head_lock
from rackwright.engine.head_lock import HeadLock
from rackwright.errors import RunLocked
from tests.factories import make_cluster
from tests.unit.engine.local_head import LocalHeads

A = {
    "run": "20261123T080000Z-aaaaaa",
    "user": "ada",
    "host": "laptop",
    "since": "08:00",
    "command": "rackwright apply",
}
B = {
    "run": "20261123T080001Z-bbbbbb",
    "user": "bob",
    "host": "tower",
    "since": "08:01",
    "command": "rackwright apply",
}
CLUSTER = make_cluster()
SECONDS = 15.0


@pytest.fixture
def heads(tmp_path, monkeypatch):
    found = LocalHeads()
    monkeypatch.setattr(head_lock, "_dial", found.dial)
    monkeypatch.setattr(head_lock, "LOCKS", str(tmp_path / "run"))
    monkeypatch.setattr(head_lock, "JOURNALS", str(tmp_path / "lib" / "runs"))
    monkeypatch.setattr(head_lock, "BEAT_SECONDS", 0.2)
    yield found
    found.end()


def lock(by=A, lost=None, notices=None):
    noted = notices if notices is not None else []
    return HeadLock(CLUSTER, by, lost=lost.append if lost is not None else pytest.fail, notice=noted.append)


def until(true):
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)


def test_a_second_operator_is_refused_and_reads_who_has_it(heads):
    with lock(A):
        with pytest.raises(RunLocked) as refused, lock(B):
            pass
        assert (
            "locked on head1 by ada@laptop (`rackwright apply`, run 20261123T080000Z-aaaaaa) since 08:00"
            in str(refused.value)
        )
        assert f"rackwright runs {CLUSTER.path}" in refused.value.hint
    with lock(B) as later:
        assert later.node == "head1"


def test_the_greeting_of_a_login_shell_is_no_answer(heads, tmp_path):
    notices = []
    heads.greeting = "echo hello; echo '{\"held\": false}'; printf 'and once more'; echo on stderr >&2"
    with lock(A, notices=notices) as mine:
        assert (mine.node, notices) == ("head1", [])
        mine.send(A["run"], '{"n": 1}')
        with pytest.raises(RunLocked), lock(B):
            pass
    assert (tmp_path / "lib/runs/test" / f"{A['run']}.jsonl").read_text() == '{"n": 1}\n'


def test_a_greeting_without_end_is_no_lock(heads):
    notices = []
    heads.greeting = "yes"
    with lock(A, notices=notices) as mine:
        assert mine.node is None
    assert notices[0].startswith("The run holds no lock on a head (head1: ")


def test_it_ends_with_a_run_that_is_killed(heads):
    with lock(A, lost=[]):
        heads.lines[0].process.send_signal(signal.SIGKILL)
        heads.lines[0].process.wait(10)
        with lock(B):
            pass


def test_it_ends_with_a_run_that_is_silent(heads, monkeypatch):
    """A network cut: nothing arrives, and nothing says that the other side is gone."""
    monkeypatch.setattr(head_lock, "SILENT_SECONDS", 0.4)
    monkeypatch.setattr(head_lock, "BEAT_SECONDS", 60)
    with lock(A, lost=[]):
        until(lambda: heads.lines[0].process.poll() is not None)
        with lock(B):
            pass


def test_a_sign_of_life_keeps_it(heads, monkeypatch):
    monkeypatch.setattr(head_lock, "SILENT_SECONDS", 1.0)
    with lock(A):
        time.sleep(2)
        with pytest.raises(RunLocked), lock(B):
            pass


def test_a_run_that_was_away_takes_it_again(heads, tmp_path):
    lost = []
    with lock(A, lost) as mine:
        heads.lines[0].process.kill()
        until(lambda: len(heads.lines) == 2)
        mine.send(A["run"], '{"n": 1}')
        path = tmp_path / "lib/runs/test" / f"{A['run']}.jsonl"
        until(path.exists)
        with pytest.raises(RunLocked), lock(B):
            pass
    assert lost == []


@pytest.mark.parametrize("ended", [False, True])
def test_a_run_that_was_away_while_another_changed_the_cluster_is_told_to_stop(heads, ended):
    lost = []
    with lock(A, lost) as mine, ExitStack() as others:
        take = mine._take

        def after_another(node):
            with ExitStack() as other:
                other.enter_context(HeadLock(CLUSTER, B, lost=pytest.fail))
                if not ended:
                    others.push(other.pop_all())
            if ended:
                heads.lines[-1].process.wait(60)  # its lock may outlive the connection for a moment
            take(node)

        mine._take = after_another
        heads.lines[0].process.kill()
        until(lambda: lost)
    (why,) = lost
    assert ("meanwhile" in why and B["run"] in why) if ended else ("is locked on head1 by bob@tower" in why)


def test_a_plan_made_while_another_ran_is_made_again(heads):
    with lock(A) as first:
        assert not first.another_ran_within(3600), "nobody ran before"
    heads.lines[-1].process.wait(10)  # on a busy machine its lock outlives the connection for a moment
    with lock(B) as second:
        assert second.another_ran_within(600)  # however long a busy machine took for the second lock
    heads.lines[-1].process.wait(10)
    with lock(B) as again:
        assert not again.another_ran_within(3600), "it was this run"


def test_a_plan_made_after_another_ended_holds(heads, tmp_path):
    with lock(A):
        pass
    heads.lines[0].process.wait(10)
    record = tmp_path / "run" / "test.run"
    found = json.loads(record.read_text())
    record.write_text(json.dumps({**found, "seen": found["seen"] - 100}))
    with lock(B) as second:
        assert not second.another_ran_within(90)
        assert second.another_ran_within(101)


def test_without_a_head_that_answers_the_run_goes_on_and_says_so(heads):
    notices = []
    heads.unreachable = {"head1"}
    with lock(A, notices=notices) as mine:
        assert mine.node is None
        mine.send(A["run"], "{}")
    why = "head1: Cannot connect to head1: no answer within 1 s"
    only = f"The run holds no lock on a head ({why}); it is protected only by the lock on this machine."
    assert notices == [only]


def test_a_head_without_python_is_named(heads, monkeypatch):
    notices = []
    monkeypatch.setattr(
        head_lock, "python_command", lambda program: ("sh -c 'echo no such program >&2; exit 127'", b"")
    )
    with lock(A, notices=notices) as mine:
        assert mine.node is None
    assert "head1: " in notices[0]


def test_only_the_record_can_be_opened_by_others(heads, tmp_path):
    """Who can open a file can lock it, and so keep every operator out."""
    with lock(A):
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "run").iterdir()}
        assert modes == {"test.lock": 0o600, "test.run": 0o644}
        assert json.loads((tmp_path / "run/test.run").read_text())["user"] == "ada"


@pytest.mark.parametrize("how", ["link", "writable"])
def test_a_folder_that_another_user_prepared_is_refused(heads, tmp_path, how):
    notices = []
    (tmp_path / "elsewhere").mkdir()
    if how == "link":
        (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    else:
        (tmp_path / "run").mkdir()
        (tmp_path / "run").chmod(0o777)
    with lock(A, notices=notices) as mine:
        assert mine.node is None
    assert "is not a folder that only root may write" in notices[0]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_journals_are_kept_there_whole_and_private(heads, tmp_path):
    with lock(A) as mine:
        for number in range(500):
            mine.send(A["run"], json.dumps({"n": number}))
        mine.send(B["run"], '{"event": "resume"}')
        mine.send("../../escape", '{"event": "x"}')
    place = tmp_path / "lib/runs/test"
    lines = (place / f"{A['run']}.jsonl").read_text().splitlines()
    assert [json.loads(line)["n"] for line in lines] == list(range(500))
    assert sorted(path.name for path in place.iterdir()) == [f"{A['run']}.jsonl", f"{B['run']}.jsonl"]
    assert not list(tmp_path.rglob("*escape*"))
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE((place / f"{A['run']}.jsonl").stat().st_mode) == 0o600


def test_a_line_that_was_cut_off_there_spoils_no_other(heads, tmp_path):
    place = tmp_path / "lib/runs/test"
    with lock(A) as mine:
        mine.send(A["run"], '{"n": 1}')
    path = place / f"{A['run']}.jsonl"
    path.write_text(path.read_text() + '{"n": 2, "half')
    with lock(A) as mine:
        mine.send(A["run"], '{"n": 3}')
    assert path.read_text().splitlines() == ['{"n": 1}', '{"n": 2, "half', '{"n": 3}']


def test_the_latest_hundred_are_kept(heads, tmp_path):
    place = tmp_path / "lib/runs/test"
    place.mkdir(parents=True)
    for folder in (place, place.parent):
        folder.chmod(0o700)
    for number in range(120):
        path = place / f"20260101T000000Z-{number:06x}.jsonl"
        path.write_text("{}\n")
        os.utime(path, (number, number))
    with lock(A) as mine:
        mine.send(A["run"], "{}")
    left = sorted(path.name for path in place.iterdir())
    assert len(left) == 101
    assert left[0] == f"20260101T000000Z-{20:06x}.jsonl"


def test_a_full_disk_of_the_head_is_said_once_and_ends_nothing(heads, tmp_path):
    notices = []
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/runs").write_text("")  # cannot hold journals
    with lock(A, notices=notices) as mine:
        for _ in range(3):
            mine.send(A["run"], "{}")
            time.sleep(0.3)
        assert mine.node == "head1"
    assert len(notices) == 1
    assert notices[0].startswith("The journal cannot be kept on head1: ")


def test_text_of_a_compromised_head_is_printable(heads, monkeypatch, tmp_path):
    odd = {**A, "user": "\x1b[2Jada", "command": "x" * 9999}
    with lock(odd), pytest.raises(RunLocked) as refused, lock(B):
        pass
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 800


@pytest.mark.parametrize("answer", [b"[]\n", b"{\n", b'{"held": "yes"}\n', b"x" * 99999, b"", b"null\n"])
def test_garbage_of_a_head_is_no_lock(heads, monkeypatch, answer, tmp_path):
    notices = []
    (tmp_path / "answer").write_bytes(answer)
    command = f"sh -c 'cat >/dev/null & cat {tmp_path / 'answer'}'"
    monkeypatch.setattr(head_lock, "python_command", lambda program: (command, b""))
    with lock(A, notices=notices) as mine:
        assert mine.node is None
    assert notices[0].startswith("The run holds no lock on a head (head1: ")


def test_an_unprivileged_user_cannot_keep_operators_out(heads, monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(head_lock, "LOCKS", f"{folder}/run")
        with lock(A):
            pass
        Path(folder).chmod(0o755)
        as_nobody = ["setpriv", "--reuid=65534", "--clear-groups"]
        assert subprocess.run(
            [*as_nobody, "cat", f"{folder}/run/test.run"], check=True, capture_output=True
        ).stdout
        tried = subprocess.run([*as_nobody, "flock", "-n", f"{folder}/run/test.lock", "true"], check=False)
        assert tried.returncode != 0, "it could have kept the lock for as long as it likes"


def test_after_a_pause_the_run_waits_until_it_knows_whether_it_still_has_the_lock(heads, monkeypatch):
    """A machine that was asleep: its next wave must not begin before the head has been asked."""
    lost = []
    with lock(A, lost) as mine:
        take = mine._take

        def late(node):
            with HeadLock(CLUSTER, B, lost=pytest.fail):
                pass
            time.sleep(0.5)
            take(node)

        mine._take = late
        mine.confirm()
        assert lost == []
        mine._heard -= 2 * head_lock.SILENT_SECONDS
        heads.lines[0].process.kill()
        mine.confirm()
        assert len(lost) == 1, "it went on before it knew"


def test_a_head_that_is_gone_holds_up_no_wave(heads):
    with lock(A, lost=[]) as mine:
        heads.unreachable = {"head1"}
        mine._heard -= 2 * head_lock.SILENT_SECONDS
        heads.lines[0].process.kill()
        began = time.monotonic()
        mine.confirm()
        assert time.monotonic() - began < 10
