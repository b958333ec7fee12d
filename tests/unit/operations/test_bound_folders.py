"""A folder that its server has at a second path: bound there, unless that hides rackwright's own login."""

from __future__ import annotations

import shlex
import subprocess
from typing import ClassVar

import pytest

from rackwright.operations.mounts import _SAME
from tests.unit.pyinfra_driver.local import LocalRun, LocalShell
from tests.unit.roles.nfs_sites import nfs, served

DEPLOY = """\
from rackwright.operations import mounts
mounts.bound(name='Mount it', folder='/srv/home', path='/home')
"""
ROOT = "0 0 0:0 / / rw - ext4 /dev/vda1 rw"
HOME = "0 0 0:0 /srv/home /home rw - ext4 /dev/vda1 rw"
RUNS = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
MISSING = "LoadState=not-found\nActiveState=inactive\nUnitFileState=\n"


class Server(LocalShell):
    """systemd and the kernel show what the test wants."""

    unit: ClassVar[str] = MISSING
    table: ClassVar[str] = ROOT
    seen: ClassVar[str] = "same"
    """What the comparison of both folders prints."""
    login: ClassVar[str] = "/var/lib/admin"
    """The home of rackwright's own login."""

    def execute(self, command, arguments):
        text = str(command)
        answer = "true"
        if "systemctl show" in text:
            answer = f"printf %s {shlex.quote(Server.unit)}"
        elif "mountinfo" in text:
            answer = f"printf %s {shlex.quote(Server.table)}"
        elif "stat -c" in text:
            answer = f"printf %s {Server.seen}"
        elif "getent passwd" in text:
            answer = f"echo admin:x:1000:1000::{Server.login}:/bin/bash; echo admin; echo admin"
        return LocalShell.execute(self, answer, {})


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """The plan of head1."""

    def _plan(unit, *table, seen="same", login="/var/lib/admin"):
        monkeypatch.setattr(Server, "seen", seen)
        monkeypatch.setattr(Server, "unit", unit)
        monkeypatch.setattr(Server, "table", "\n".join((ROOT, *table)) + "\n")
        monkeypatch.setattr(Server, "login", login)
        cluster = served(nfs())
        one = cluster.model_copy(update={"nodes": (cluster.by_name["head1"],)})
        return LocalRun(one, tmp_path, Server).plan(DEPLOY)["head1"]

    return _plan


def changes(found):
    assert found.error is None
    return [
        (one.target, one.after, one.because, one.disruptive)
        for operation in found.operations
        for one in operation.changes
    ]


def test_a_new_one_is_mounted_and_comes_back_at_boot(plan):
    assert changes(plan(MISSING)) == [
        ("home.mount", "enabled", None, False),
        ("home.mount", "running", None, False),
    ]


def test_one_that_is_there_stays(plan):
    assert changes(plan(RUNS, HOME)) == []


@pytest.mark.parametrize("login", ["/home/admin", "/home"])
def test_the_home_of_rackwright_s_own_login_is_never_hidden(plan, login):
    refused = plan(MISSING, login=login)
    assert f"/home would hide {login}, the home of admin" in (refused.error or "")
    # what is bound there already hides nothing more
    assert changes(plan(RUNS, HOME, login=login)) == []
    assert "would hide" in (plan(RUNS, HOME, seen="other", login=login).error or "")


def test_another_folder_that_is_bound_there_makes_way(plan):
    """The mount unit is active whatever it was started with."""
    restarted = plan(RUNS + "NeedDaemonReload=yes\n", HOME, seen="other")
    assert ("home.mount", "restarted", "/home is not /srv/home", True) in changes(restarted)
    commands = restarted.operations[0].commands
    assert commands[0] == "systemctl daemon-reload"
    assert commands[1].startswith("systemctl restart home.mount")


def test_one_that_does_not_answer_is_not_judged(plan):
    assert "/home does not answer within 10 s" in (plan(RUNS, HOME, seen="''").error or "")


def answer(folder, path, *, before=""):
    text = _SAME.format(folder=shlex.quote(str(folder)), path=shlex.quote(str(path)), seconds=1)
    done = subprocess.run(["sh", "-c", before + text], capture_output=True, text=True, check=True, timeout=20)
    return done.stdout.strip()


def test_folders_are_compared_on_the_node(tmp_path):
    first, second, link = tmp_path / "fir st", tmp_path / "second", tmp_path / "link"
    first.mkdir()
    second.mkdir()
    link.symlink_to(first)
    assert answer(first, first) == "same"
    assert answer(f"{link}/.", first) == "same"
    assert answer(first, second) == "other"
    # an array that will hold the new folder is made later in the same run
    assert answer(tmp_path / "none", first) == "other"


def test_a_folder_that_hangs_prints_nothing(tmp_path):
    (tmp_path / "stat").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "stat").chmod(0o755)
    assert answer(tmp_path, tmp_path, before=f"PATH={shlex.quote(str(tmp_path))}:$PATH\n") == ""
