"""The program that asks filesystems, run for real: folders that answer, refuse, and hang."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from rackwright.claims.check import Undetermined
from rackwright.claims.mount_probe import PROGRAM, Answer, answers
from tests.unit.roles.nfs_sites import nfs

HANGS = "import os, time\nos.statvfs = lambda path: time.sleep(60)\n"
STALE = "import os, errno\ndef gone(path):\n    raise OSError(errno.ESTALE, 'Stale file handle')\nos.statvfs = gone\n"


def ask(tmp_path, *asked, write=False, before="", seconds="5"):
    """What the program prints, with its own folder for what an earlier question left behind."""
    program = before + PROGRAM.replace("/run/rackwright-mounts", str(tmp_path / "state"))
    words = [word for path in asked for word in (str(path), seconds)]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-IS", "-c", program, "write" if write else "read", *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return json.loads(done.stdout), time.monotonic() - began


def test_a_folder_that_answers(tmp_path):
    found, _ = ask(tmp_path, tmp_path)
    one = answers(json.dumps(found), (nfs(path=str(tmp_path)),))[str(tmp_path)]
    room = os.statvfs(tmp_path)
    assert (one.hangs, one.error, one.blocks, one.files) == (False, "", room.f_blocks, room.f_files)
    assert one.writes is None
    assert list((tmp_path / "state").iterdir()) == []


def test_a_folder_that_can_be_written_is_left_as_it_was(tmp_path):
    (tmp_path / "home").mkdir()
    found, _ = ask(tmp_path, tmp_path / "home", write=True)
    assert found[str(tmp_path / "home")]["writes"] is True
    assert list((tmp_path / "home").iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path):
    found, _ = ask(tmp_path, tmp_path / "none")
    assert found[str(tmp_path / "none")] == {"error": "ENOENT", "text": "No such file or directory"}


def test_a_stale_handle(tmp_path):
    found, _ = ask(tmp_path, tmp_path, before=STALE)
    assert found[str(tmp_path)]["error"] == "ESTALE"


SQUASHED = """import builtins, errno, os
def refused(*given, **named):
    raise PermissionError(errno.EACCES, 'Permission denied')
opened, looked = builtins.open, os.stat
builtins.open = lambda name, mode='r': refused() if mode == 'x' else opened(name, mode)
"""
"""A server that squashes root: it writes nothing."""
CLOSED = "os.stat = lambda path: refused() if path.endswith('/.') else looked(path)\nos.scandir = refused\n"
"""And its top folder is not searchable for others."""
SAYS = "os.setgroups = os.setgid = os.setuid = lambda given: None\nos.access = lambda folder, mode: {yes}\n"
ERRNO = """import ctypes
class Library:
    def __init__(self, *given, **named): pass
    def access(self, *given): return -1
ctypes.CDLL, ctypes.get_errno = Library, lambda: errno.{name}
"""


def test_squashed_root_still_learns_what_is_free(tmp_path):
    """Mode 0770: healthy, and nothing that root may look into."""
    owned = "top = os.stat_result((0o40770, 1, 1, 2, 0, 100, 0, 0, 0, 0))\n"
    closed = CLOSED.replace("looked(path)", f"top if path == {str(tmp_path)!r} else looked(path)")
    found, _ = ask(tmp_path, tmp_path, write=True, before=SQUASHED + owned + closed)
    answer = found[str(tmp_path)]
    assert answer["blocks"] > 0
    assert answer["writes"] is None


@pytest.mark.parametrize(
    ("name", "writes"),
    [("EACCES", False), ("EROFS", False), ("ENOENT", None), ("ESTALE", None), ("EKEYEXPIRED", None)],
)
def test_only_a_refusal_means_that_users_cannot_write(tmp_path, name, writes):
    owned = (
        "top = os.stat_result((0o40755, 1, 1, 2, 1000, 1000, 0, 0, 0, 0))\n"
        f"os.stat = lambda path: top if path == {str(tmp_path)!r} else looked(path)\n"
    )
    before = SQUASHED + owned + SAYS.format(yes=False) + ERRNO.format(name=name)
    found, _ = ask(tmp_path, tmp_path, write=True, before=before)
    assert found[str(tmp_path)]["writes"] is writes


SEES = """import contextlib
def made(mode, uid): return os.stat_result((mode, 1, 1, 2, uid, uid, 0, 0, 0, 0))
class Entry:
    def __init__(self, name, mode, uid): self.name, self.path, self.seen = name, "/" + name, made(mode, uid)
    def is_dir(self, follow_symlinks): return True
    def stat(self, follow_symlinks): return self.seen if self.seen.st_uid != 7 else refused()
os.stat = lambda path: made({top}, 0) if path == {path!r} else looked(path)
os.scandir = lambda path: contextlib.nullcontext(Entry(*one) for one in {entries!r})
os.setgroups = os.setgid = os.setuid = lambda given: None
os.access = lambda folder, mode: folder == "/open"
"""
"""A top folder of root's with this mode, and folders in it by name, mode and owner; 7: root may not look. Users may write
/open alone."""


@pytest.mark.parametrize(
    ("top", "entries", "writes"),
    [
        ("0o40755", [], "root"),
        ("0o40755", [("tools", 0o40755, 0), ("lost+found", 0o40700, 0)], "root"),
        ("0o40755", [("tools", 0o40755, 0), ("open", 0o40700, 1000)], True),
        ("0o40755", [("open", 0o41777, 0)], True),
        ("0o40755", [(".snapshot", 0o40777, 0)], "root"),
        # a group may write, or an ACL lets a user
        ("0o40775", [], None),
        ("0o40755", [("tools", 0o42775, 0)], None),
        # not all of it was seen
        ("0o40755", [("x", 0o40755, 7)], None),
        ("0o40755", [("x", 0o40755, 7), ("open", 0o40755, 1000)], True),
        ("0o40755", [(str(number), 0o40755, 0) for number in range(513)], None),
    ],
)
def test_where_only_root_may_write_is_told_apart_from_what_is_not_known(tmp_path, top, entries, writes):
    before = SQUASHED + SEES.format(top=top, path=str(tmp_path), entries=entries)
    found, _ = ask(tmp_path, tmp_path, write=True, before=before)
    assert found[str(tmp_path)]["writes"] == writes


def test_a_folder_that_squashed_root_may_not_list_may_hold_users_folders(tmp_path):
    sees = SEES.format(top="0o40750", path=str(tmp_path), entries=[])
    found, _ = ask(tmp_path, tmp_path, write=True, before=f"{SQUASHED}{sees}os.scandir = refused\n")
    assert found[str(tmp_path)]["writes"] is None


def test_a_mount_that_is_read_only_is_found_whoever_may_write_there(tmp_path):
    read_only = (
        "room = os.statvfs('/')\n"
        "class ReadOnly:\n    f_flag = os.ST_RDONLY\n    def __getattr__(self, name): return getattr(room, name)\n"
        "os.statvfs = lambda path: ReadOnly()\n"
    )
    sees = SEES.format(top="0o40755", path=str(tmp_path), entries=[])
    found, _ = ask(tmp_path, tmp_path, write=True, before=SQUASHED + sees + read_only)
    assert found[str(tmp_path)] == {"error": "EROFS", "text": "Read-only file system"}


def test_what_only_root_may_write():
    text = '{"/home": {"seconds": 1, "blocks": 1, "available": 1, "files": 1, "files_available": 1, "writes": "root"}}'
    answer = answers(text, (nfs(),))["/home"]
    assert (answer.writes, answer.only_root) == (None, True)


def test_one_that_hangs_costs_its_deadline_and_no_other_s_answer(tmp_path):
    (tmp_path / "good").mkdir()
    slow = (
        "import os, time\nreal = os.statvfs\n"
        f"os.statvfs = lambda path: time.sleep(60) if path == {str(tmp_path)!r} else real(path)\n"
    )
    found, took = ask(tmp_path, tmp_path, tmp_path / "good", before=slow, seconds="1")
    assert found[str(tmp_path)] == {"hangs": True, "seconds": 1.0}
    assert found[str(tmp_path / "good")]["blocks"] > 0
    assert took < 10


def test_no_second_process_is_sent_after_one_that_still_hangs(tmp_path):
    """One that SIGKILL does not end, as the kernel's uninterruptible sleep has it, is left alone."""
    unkillable = HANGS + "import signal\nos.kill = lambda pid, number: None\n"
    first, _ = ask(tmp_path, tmp_path, before=unkillable, seconds="1")
    assert first[str(tmp_path)] == {"hangs": True, "seconds": 1.0}
    (mark,) = (tmp_path / "state").iterdir()
    pid = int(mark.read_text().split()[0])
    try:
        second, took = ask(tmp_path, tmp_path, before=unkillable, seconds="1")
        assert second[str(tmp_path)] == {"hangs": True, "seconds": 0}
        assert took < 5
        assert mark.read_text().split()[0] == str(pid)
    finally:
        os.kill(pid, 9)
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.05)
    third, _ = ask(tmp_path, tmp_path)
    assert "hangs" not in third[str(tmp_path)]


def test_paths_that_look_alike_have_marks_of_their_own(tmp_path):
    for name in ("a-b", "a"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "b").mkdir()
    slow = "import os, time\nos.statvfs = lambda path: time.sleep(60)\nos.kill = lambda pid, number: None\n"
    ask(tmp_path, tmp_path / "a-b", before=slow, seconds="1")
    (mark,) = (tmp_path / "state").iterdir()
    found, _ = ask(tmp_path, tmp_path / "a" / "b")
    os.kill(int(mark.read_text().split()[0]), 9)
    assert "hangs" not in found[str(tmp_path / "a" / "b")]


@pytest.mark.parametrize(
    "text", ["", "nothing", "{}", '{"/home": {}}', '{"/home": {"seconds": "x"}}', '{"/home": []}']
)
def test_what_cannot_be_read_is_unknown(text):
    with pytest.raises(Undetermined, match="cannot parse what the node printed about its filesystems"):
        answers(text, (nfs(),))


def test_answers_by_path():
    text = '{"/home": {"seconds": 5, "hangs": true}}'
    assert answers(text, (nfs(),)) == {"/home": Answer(5.0, hangs=True)}
