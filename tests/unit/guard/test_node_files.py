"""Files of root's: what another user plants in their way is neither followed nor written."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

from rackwright.health.guard import places
from rackwright.health.guard.node_files import NodeFiles

SECRET = "the munge key"


@pytest.fixture
def node(tmp_path):
    """A node whose exporter's user owns the textfile folder, and a file of root's that it may not read."""
    for folder in (places.STATE, places.METRICS_FOLDER, places.TEXTFILES):
        (tmp_path / folder.strip("/")).mkdir(parents=True)
    (tmp_path / "key").write_text(SECRET)
    (tmp_path / "key").chmod(0o400)
    return tmp_path


def at(node, path):
    return node / path.strip("/")


def untouched(node):
    key = node / "key"
    return key.read_text() == SECRET and stat.S_IMODE(key.stat().st_mode) == 0o400


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("planted", [places.METRICS, f"{places.METRICS}.new", places.METRICS + ".{pid}.new"])
def test_a_planted_link_is_replaced_and_never_followed(node, planted):
    planted = planted.format(pid=os.getpid())
    at(node, planted).symlink_to(node / "key")
    assert NodeFiles(str(node)).keep(places.METRICS, "up 1", mode=0o644)
    assert untouched(node)
    assert at(node, places.METRICS).read_text() == "up 1\n"
    assert not at(node, places.METRICS).is_symlink()
    assert mode(at(node, places.METRICS)) == 0o644


def test_a_planted_hard_link_is_replaced_and_never_written(node):
    os.link(node / "key", at(node, f"{places.METRICS}.new"))
    assert NodeFiles(str(node)).keep(places.METRICS, "up 1", mode=0o644)
    assert untouched(node)


def test_two_passes_that_write_at_once_leave_one_whole_file(node, monkeypatch):
    """A pass waits for the other one's lock, and not forever: on a slow disk both write."""
    program = (
        "import sys; from rackwright.health.guard.node_files import NodeFiles;"
        "sys.exit(not NodeFiles(sys.argv[1]).keep(sys.argv[2], 'theirs'))"
    )
    sync = os.fsync

    def slow(descriptor):
        """While this pass waits for its disk, another one writes the same file from beginning to end."""
        subprocess.run([sys.executable, "-c", program, str(node), places.LAST], check=True)
        assert at(node, places.LAST).read_text() == "theirs\n"
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    assert NodeFiles(str(node)).keep(places.LAST, "ours")
    assert at(node, places.LAST).read_text() == "ours\n"
    assert [path.name for path in at(node, places.STATE).iterdir()] == ["last.json"]


@pytest.mark.parametrize("left", ["last.json.new", "last.json.4194305.new", "last.json.{pid}.new"])
def test_what_a_killed_pass_left_goes_with_the_next(node, left):
    """Of an earlier version; of a process that is gone; of one that had this one's number before a reboot."""
    (at(node, places.STATE) / left.format(pid=os.getpid())).write_text("half")
    assert NodeFiles(str(node)).keep(places.LAST, "{}")
    assert [path.name for path in at(node, places.STATE).iterdir()] == ["last.json"]


def test_verdicts_are_for_root_alone(node):
    assert NodeFiles(str(node)).keep(places.LAST, "{}")
    assert mode(at(node, places.LAST)) == 0o600


@pytest.mark.parametrize("access", [0o775, 0o757, 0o1777])
def test_a_folder_that_others_may_write_gets_no_file(node, access):
    at(node, places.METRICS_FOLDER).chmod(access)
    assert not NodeFiles(str(node)).keep(places.METRICS, "up 1")
    assert list(at(node, places.METRICS_FOLDER).iterdir()) == []


def test_a_folder_that_is_a_link_gets_no_file(node):
    folder = at(node, places.METRICS_FOLDER)
    folder.rmdir()
    folder.symlink_to(at(node, places.STATE))
    assert not NodeFiles(str(node)).keep(places.METRICS, "up 1")
    assert list(at(node, places.STATE).iterdir()) == []


def test_a_folder_of_another_user_gets_no_file(node, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    assert not NodeFiles(str(node)).keep(places.METRICS, "up 1")


@pytest.mark.parametrize("planted", ["rackwright_health.prom", ".rackwright_health.prom.new"])
def test_in_the_exporters_folder_root_opens_nothing(node, planted):
    folder = at(node, places.TEXTFILES)
    (folder / planted).symlink_to(node / "key")
    NodeFiles(str(node)).link(places.TEXTFILES, places.METRICS)
    assert untouched(node)
    assert os.readlink(folder / "rackwright_health.prom") == places.METRICS
    assert [path.name for path in folder.iterdir()] == ["rackwright_health.prom"]


def test_a_file_of_an_earlier_version_becomes_the_link_and_the_link_stays(node):
    folder = at(node, places.TEXTFILES)
    (folder / "rackwright_health.prom").write_text("old 1\n")
    for _ in range(2):
        NodeFiles(str(node)).link(places.TEXTFILES, places.METRICS)
        assert os.readlink(folder / "rackwright_health.prom") == places.METRICS


def test_a_node_without_an_exporter_has_no_link_and_no_folder(node):
    at(node, places.TEXTFILES).rmdir()
    NodeFiles(str(node)).link(places.TEXTFILES, places.METRICS)
    assert not at(node, places.TEXTFILES).exists()


@pytest.mark.parametrize("replaced", [places.TEXTFILES, places.TEXTFILES.rpartition("/")[0]])
def test_a_folder_that_became_a_link_gets_nothing(replaced, node):
    """The exporter's user replaces its folder, or the one above, by a link to a folder of root's."""
    elsewhere = node / "etc"
    (elsewhere / "node-exporter").mkdir(parents=True)
    at(node, replaced).rename(node / "away")
    at(node, replaced).symlink_to(elsewhere)
    at(node, replaced).parent.chmod(0o775)  # as good as another owner, which a test cannot make
    NodeFiles(str(node)).link(places.TEXTFILES, places.METRICS)
    assert [path.name for path in elsewhere.rglob("*")] == ["node-exporter"]


def test_a_link_that_the_operator_made_is_followed(node):
    """E.g. /var/lib on another disk."""
    at(node, "/var/lib/prometheus").rename(node / "disk")
    at(node, "/var/lib/prometheus").symlink_to(node / "disk")
    NodeFiles(str(node)).link(places.TEXTFILES, places.METRICS)
    assert os.readlink(node / "disk" / "node-exporter" / "rackwright_health.prom") == places.METRICS


def test_a_directory_in_the_way_of_the_link_is_left_alone(node):
    blocked = at(node, places.TEXTFILES) / ".rackwright_health.prom.new"
    blocked.mkdir()
    NodeFiles(str(node)).link(places.TEXTFILES, places.METRICS)
    assert blocked.is_dir()
