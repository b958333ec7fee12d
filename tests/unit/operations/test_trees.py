"""A directory with exactly the declared files, against a real file system."""

from __future__ import annotations

import getpass
import grp
import os
import shutil
import subprocess

import pytest

from rackwright.command import CommandResult
from rackwright.factcache.cache import ClassCache
from rackwright.facts.files import Tree

WHO = f"{getpass.getuser()}:{grp.getgrgid(os.getgid()).gr_name}"
FILES = {
    "pkg/__init__.py": "",
    "pkg/a.py": "x = 'it''s \\\\ $(id)'\n",
    "pkg/deep/b.py": "no newline",
    "c.txt": "ü\n",
}


def _deploy(path, files=None):
    owner, _, group = WHO.partition(":")
    return (
        "from rackwright.operations import trees\n"
        f"trees.tree(name='Write it', path={str(path)!r}, files={files or FILES!r}, owner={owner!r}, group={group!r})"
    )


def _texts(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()
    }


@pytest.fixture
def target(one, tmp_path):
    folder = tmp_path / "it's here"
    assert one.apply(_deploy(folder))["node1"].ok
    return folder


def test_a_new_directory_is_written_whole(one, target):
    assert _texts(target) == FILES
    modes = {path.is_dir(): path.stat().st_mode & 0o7777 for path in (target, *target.rglob("*"))}
    assert modes == {True: 0o755, False: 0o644}
    assert [path.name for path in target.parent.iterdir() if path.name.startswith(".")] == []
    assert one.plan(_deploy(target))["node1"].changes == 0


def test_a_plan_says_how_many_files_come(one, tmp_path):
    (operation,) = one.plan(_deploy(tmp_path / "new"))["node1"].operations
    (change,) = operation.changes
    assert (change.kind, change.before, change.after) == (
        "directory",
        None,
        f"directory with 4 files, 644 {WHO}",
    )
    assert change.target == str(tmp_path / "new")


def changed(folder):
    (folder / "pkg/a.py").write_text("x = 2\n")


def missing(folder):
    (folder / "pkg/a.py").unlink()


def extra(folder):
    (folder / "pkg/json.py").write_text("")


def an_extra_folder(folder):
    (folder / "pkg/empty").mkdir()


def an_extra_link(folder):
    (folder / "pkg/link.py").symlink_to("a.py")


def writable_by_others(folder):
    (folder / "pkg/deep").chmod(0o777)


def a_file_writable_by_others(folder):
    (folder / "pkg/a.py").chmod(0o666)


def a_link_in_place_of_a_file(folder):
    (folder / "c.txt").rename(folder.parent / "elsewhere")
    (folder / "c.txt").symlink_to("../elsewhere")


def several(folder):
    for number in range(7):
        (folder / f"{number}.py").write_text("")


DRIFTS = {
    changed: "pkg/a.py differs",
    missing: "pkg/a.py is missing",
    extra: "pkg/json.py is not declared",
    an_extra_folder: "pkg/empty is not declared",
    an_extra_link: "pkg/link.py is not declared",
    writable_by_others: "pkg/deep differs",
    a_file_writable_by_others: "pkg/a.py differs",
    a_link_in_place_of_a_file: "c.txt differs",
    several: ", ".join(f"{number}.py is not declared" for number in range(5)) + " and 2 more",
}


@pytest.mark.parametrize("drift", DRIFTS)
def test_any_difference_is_named_and_repaired(one, target, drift):
    drift(target)
    (operation,) = one.plan(_deploy(target))["node1"].operations
    assert [change.before for change in operation.changes] == [DRIFTS[drift]]
    assert one.apply(_deploy(target))["node1"].ok
    assert _texts(target) == FILES
    assert one.plan(_deploy(target))["node1"].changes == 0


def test_what_python_keeps_is_left_alone_until_the_directory_is_replaced(one, target):
    cache = target / "pkg/__pycache__"
    cache.mkdir()
    (cache / "a.cpython-311.pyc").write_bytes(b"code")
    assert one.plan(_deploy(target))["node1"].changes == 0
    changed(target)
    assert one.apply(_deploy(target))["node1"].ok
    assert not cache.exists()


@pytest.mark.parametrize("drift", [changed, missing, extra])
def test_a_check_in_one_execution_sees_it(one, target, tmp_path, drift):
    """As drift and a plan without changes ask: all of a node's questions at once."""
    batches = []

    def ask(command, stdin):
        batches.append(stdin)
        done = subprocess.run(
            ["sh", "-c", command], input=stdin, capture_output=True, timeout=240, check=False
        )
        return CommandResult(command, done.returncode, done.stdout.decode(), done.stderr.decode())

    def plan():
        batches.clear()
        one.reported.plans.clear()
        return one.plan(_deploy(target), ClassCache(tmp_path / "cache", "class", "k"))["node1"]

    one.ask = ask
    for _ in range(3):
        assert plan().changes == 0
    assert (plan().executions, len(batches)) == (1, 1)
    drift(target)
    assert plan().changes == 1


def test_half_of_it_never_gets_its_name(one, tmp_path):
    (operation,) = one.plan(_deploy(tmp_path / "new"))["node1"].operations
    done = subprocess.run(
        ["sh", "-c", operation.commands[0]], input="c.txt w7w", capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == f"the content of {tmp_path}/new did not arrive whole\n"
    assert not (tmp_path / "new").exists()


def test_what_a_killed_one_left_goes_with_the_next(one, tmp_path):
    left = tmp_path / ".new.rackwright-4194305"  # above the highest process id
    (left / "new").mkdir(parents=True)
    assert one.apply(_deploy(tmp_path / "new"))["node1"].ok
    assert not left.exists()


@pytest.mark.parametrize("make", ["write_text", "symlink_to"])
def test_something_else_in_its_place_is_refused(one, tmp_path, make):
    getattr(tmp_path / "new", make)("elsewhere")
    assert "new is not a directory on the node" in one.plan(_deploy(tmp_path / "new"))["node1"].error


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "a b", "a/../b", ""])
def test_a_name_that_leads_elsewhere_is_refused(one, tmp_path, name):
    error = one.plan(_deploy(tmp_path / "new", {name: "x"}))["node1"].error
    assert "not a relative name of plain characters" in error


def test_a_missing_folder_is_named(one, tmp_path):
    outcome = one.apply(_deploy(tmp_path / "no" / "x"))["node1"]
    assert f"the folder of {tmp_path}/no/x does not exist" in outcome.error


def test_a_tree_that_cannot_be_listed_is_not_an_empty_one(tmp_path):
    (tmp_path / "a").write_text("a")
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("find", "sort"):  # and no sha256sum
        (tools / tool).symlink_to(shutil.which(tool))
    command = Tree().command(str(tmp_path))
    assert _status(command, tools) == 127
    (tools / "sha256sum").symlink_to(shutil.which("sha256sum"))
    assert _status(command, tools) == 0


def _status(command, tools):
    return subprocess.run(["/bin/sh", "-c", command], env={"PATH": str(tools)}, check=False).returncode
