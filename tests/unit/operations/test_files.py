"""Files, directories and links against a real file system."""

from __future__ import annotations

import base64
import getpass
import grp
import os
import subprocess

import pytest

from rackwright.facts.files import ABSENT, parse_path_state
from rackwright.plan.changes import MASK
from tests.unit.pyinfra_driver.local import LocalShell

GROUP = grp.getgrgid(os.getgid()).gr_name
WHO = f"owner={getpass.getuser()!r}, group={GROUP!r}"


def _file(path, content, extra=""):
    return (
        "from rackwright.operations import files\n"
        f"files.file(name='Write it', path={str(path)!r}, content={content!r}, {WHO}{extra})"
    )


def _only_change(plans):
    (plan,) = plans.values()
    assert plan.error is None
    (operation,) = plan.operations
    (change,) = operation.changes
    return change


def test_a_new_file_is_planned_whole_and_written(one, tmp_path):
    target = tmp_path / "new"
    change = _only_change(one.plan(_file(target, "one\ntwo\n")))
    assert (change.before, change.after) == (None, f"file 644 {getpass.getuser()}:{GROUP}")
    assert change.diff == ("--- /dev/null", f"+++ {target}", "@@ -0,0 +1,2 @@", "+one", "+two")
    assert one.apply(_file(target, "one\ntwo\n"))["node1"].ok
    assert target.read_text() == "one\ntwo\n"
    assert target.stat().st_mode & 0o7777 == 0o644
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".new")] == []


def test_a_hand_edit_is_planned_as_exactly_that_diff(one, tmp_path):
    target = tmp_path / "conf"
    one.apply(_file(target, "a = 1\nb = 2\n"))
    target.write_text("a = 1\nb = 3\n")
    change = _only_change(one.plan(_file(target, "a = 1\nb = 2\n")))
    assert [line for line in change.diff if line[0] in "+-"][2:] == ["-b = 3", "+b = 2"]


def test_half_of_a_file_never_lands(one, tmp_path):
    """What a program that is killed has sent is followed by the end of the command's input."""
    target = tmp_path / "x"
    target.write_text("before\n")
    (operation,) = one.plan(_file(target, "after\n" * 100))["node1"].operations
    sent = base64.b64encode(b"after\n" * 100)
    for length in (0, 4, 400, len(sent) - 4):
        done = subprocess.run(
            ["sh", "-c", operation.commands[0]], input=sent[:length], capture_output=True, check=False
        )
        assert done.returncode == 1
        assert done.stderr.decode() == f"the content of {target} did not arrive whole\n"
        assert target.read_text() == "before\n"
    assert subprocess.run(["sh", "-c", operation.commands[0]], input=sent, check=False).returncode == 0
    assert target.read_text() == "after\n" * 100
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".x")] == []


@pytest.mark.parametrize(
    "content", ["", "no newline at the end", "ümläut\n", "quote ' and $(id) `id`\n", "\n\n"]
)
def test_content_lands_to_the_byte(one, tmp_path, content):
    assert one.apply(_file(tmp_path / "x", content))["node1"].ok
    assert (tmp_path / "x").read_bytes() == content.encode()
    assert one.plan(_file(tmp_path / "x", content))["node1"].changes == 0


def test_a_mode_alone_is_repaired_without_rewriting(one, tmp_path):
    target = tmp_path / "x"
    one.apply(_file(target, "text\n", ", mode='640'"))
    inode = target.stat().st_ino
    target.chmod(0o666)
    change = _only_change(one.plan(_file(target, "text\n", ", mode='640'")))
    assert (change.before.split()[1], change.after.split()[1], change.diff) == ("666", "640", ())
    one.apply(_file(target, "text\n", ", mode='640'"))
    assert (target.stat().st_mode & 0o777, target.stat().st_ino) == (0o640, inode)


def test_p6_a_binary_file_in_the_way_is_told_by_digest(one, tmp_path):
    target = tmp_path / "x"
    target.write_bytes(bytes(range(256)))
    change = _only_change(one.plan(_file(target, "text\n")))
    assert "256 bytes, sha256 40aff2e9d2d8" in change.before
    assert change.diff == ()
    assert one.apply(_file(target, "text\n"))["node1"].ok


def test_a_sensitive_file_shows_nothing_anywhere(one, tmp_path):
    target = tmp_path / "secret"
    target.write_text("old-s3cret\n")
    plan = one.plan(_file(target, "new-s3cret\n", ", sensitive=True, mode='600'"))["node1"]
    assert "s3cret" not in repr(plan)
    assert plan.operations[0].changes[0].after.endswith(f"content {MASK}")
    one.apply(_file(target, "new-s3cret\n", ", sensitive=True, mode='600'"))
    assert target.read_text() == "new-s3cret\n"
    assert not [command for _, command in LocalShell.ran_commands if "s3cret" in command]


def test_a_file_its_validator_refuses_does_not_land(one, tmp_path):
    target = tmp_path / "x"
    target.write_text("good\n")
    outcome = one.apply(_file(target, "bad\n", ", validate='grep -q good %s'"))["node1"]
    assert not outcome.ok
    assert target.read_text() == "good\n"
    assert one.apply(_file(target, "good too\n", ", validate='grep -q good %s'"))["node1"].ok


def test_a_missing_folder_is_named(one, tmp_path):
    outcome = one.apply(_file(tmp_path / "no" / "x", "a\n"))["node1"]
    assert f"the folder {tmp_path}/no does not exist" in outcome.error


def test_a_directory_in_the_way_of_a_file_is_refused(one, tmp_path):
    (tmp_path / "x").mkdir()
    plan = one.plan(_file(tmp_path / "x", "a\n"))["node1"]
    assert "is a directory on the node" in plan.error


def test_a_link_in_the_way_is_replaced_not_followed(one, tmp_path):
    (tmp_path / "precious").write_text("precious\n")
    (tmp_path / "x").symlink_to(tmp_path / "precious")
    assert one.apply(_file(tmp_path / "x", "a\n"))["node1"].ok
    assert (tmp_path / "precious").read_text() == "precious\n"
    assert not (tmp_path / "x").is_symlink()


def test_directory_link_and_absence(one, tmp_path):
    deploy = f"""
from rackwright.operations import files
files.directory(name="Make", path="{tmp_path}/d/e", mode="750", {WHO})
files.link(name="Link", path="{tmp_path}/l", target="d/e")
files.absent(name="Remove", path="{tmp_path}/gone")
"""
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "x").write_text("x")
    (tmp_path / "l").symlink_to("elsewhere")
    plan = one.plan(deploy)["node1"]
    assert [(c.kind, c.before, c.after) for o in plan.operations for c in o.changes] == [
        ("directory", None, f"directory 750 {getpass.getuser()}:{GROUP}"),
        ("link", "link to elsewhere", "link to d/e"),
        ("directory", f"directory 755 {getpass.getuser()}:{GROUP}", None),
    ]
    assert one.apply(deploy)["node1"].ok
    assert (tmp_path / "d/e").stat().st_mode & 0o777 == 0o750
    assert os.readlink(tmp_path / "l") == "d/e"
    assert not (tmp_path / "gone").exists()
    assert one.plan(deploy)["node1"].changes == 0


@pytest.mark.parametrize(
    "found", ["#!/bin/sh\necho the site's\n", b"\x7fELF\0", None], ids=["script", "program", "link"]
)
def test_a_file_of_the_site_s_is_neither_replaced_nor_removed(one, tmp_path, found):
    target, elsewhere = tmp_path / "x", tmp_path / "elsewhere"
    elsewhere.write_text("# Written by us\n")
    if found is None:
        target.symlink_to(elsewhere)
    else:
        target.write_bytes(found if isinstance(found, bytes) else found.encode())
    write = _file(target, "# Written by us\nnew\n", extra=", marker='# Written by us'")
    assert f"{target} was not written by rackwright" in one.plan(write)["node1"].error
    remove = (
        "from rackwright.operations import files\n"
        f"files.absent(name='Remove', path={str(target)!r}, marker='# Written by us')"
    )
    assert one.plan(remove)["node1"].changes == 0
    target.unlink()
    assert one.apply(write)["node1"].ok
    assert one.plan(write)["node1"].changes == 0
    assert one.apply(remove)["node1"].ok
    assert not target.exists()


@pytest.mark.parametrize("path", ["/", "/etc", "/home"])
def test_removing_a_top_level_folder_is_refused(one, path):
    deploy = f"from rackwright.operations import files\nfiles.absent(name='Remove', path={path!r})"
    assert f"refusing to remove {path}" in one.plan(deploy)["node1"].error


def test_what_the_fact_prints_is_read_strictly():
    assert parse_path_state([]) == ABSENT
    assert parse_path_state(["absent"]) == ABSENT
    with pytest.raises(ValueError, match="unreadable content"):
        parse_path_state(["file|644|root|root|4", f"{'ab' * 32} -", "not base64!"])
    with pytest.raises(ValueError, match="unreadable digest"):
        parse_path_state(["file|644|root|root|4", "YWJjCg=="])
