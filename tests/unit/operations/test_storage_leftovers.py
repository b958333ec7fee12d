"""Filesystems removed from `storage:` are found on the node, unmounted and unexported."""

from __future__ import annotations

import shlex
import subprocess
from typing import ClassVar

import pytest

from rackwright.facts.storage_leftovers import StorageFile, StorageFiles, UnreadableFiles, undeclared
from rackwright.mounts import mounts_of, unit_texts
from rackwright.roles.nfs_server import texts
from tests.unit.pyinfra_driver.local import LocalRun, LocalShell
from tests.unit.roles.nfs_sites import nfs, served
from tests.unit.roles.sites import head, worker

DEPLOY = """\
from rackwright.operations import storage_leftovers
storage_leftovers.removed(name='Remove what is left')
"""
UNITS, EXPORTS = "/etc/systemd/system", "/etc/exports.d/rackwright.exports"
HOME = f"{UNITS}/home.automount:X-Rackwright-Purpose=home\n{UNITS}/home.mount:X-Rackwright-Purpose=home\n"
DATA = f"{UNITS}/data.automount:X-Rackwright-Purpose=data\n{UNITS}/data.mount:X-Rackwright-Purpose=data\n"
STATE = f"{UNITS}/state.mount:X-Rackwright-Purpose=state\n"


class Listing(LocalShell):
    """The node has these files."""

    files: ClassVar[str] = ""

    def execute(self, command, arguments):
        answer = f"printf %s {shlex.quote(Listing.files)}" if "X-Rackwright" in str(command) else "true"
        return LocalShell.execute(self, answer, {})


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """The plan of one node of a site whose head serves /home."""

    def _plan(node, files):
        monkeypatch.setattr(Listing, "files", files)
        cluster = served(nfs())
        one = cluster.model_copy(update={"nodes": (cluster.by_name[node],)})
        return LocalRun(one, tmp_path, Listing).plan(DEPLOY)[node]

    return _plan


def listed(folder):
    """What the fact's own command finds below a folder that stands for /."""
    text = StorageFiles().command().replace("/etc/", f"{folder}/etc/")
    printed = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True, timeout=60)
    found = StorageFiles().process(printed.stdout.splitlines())
    return tuple(file._replace(path=file.path.removeprefix(str(folder))) for file in found)


def test_files_that_rackwright_wrote_are_found_and_no_others(tmp_path):
    assert listed(tmp_path) == ()
    units, exports = tmp_path / "etc/systemd/system", tmp_path / "etc/exports.d"
    units.mkdir(parents=True)
    exports.mkdir(parents=True)
    cluster = served(nfs(), nfs(name="data", path="/data", export="/srv/data", purpose="data"))
    node = worker(cluster)
    for mount in mounts_of(node, node.options["nfs_client"]):
        for path, text in unit_texts(mount).items():
            (tmp_path / path[1:]).write_text(text)
    server = head(cluster)
    for path, text in texts.files(cluster, server, server.options["nfs_server"]).items():
        (tmp_path / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path[1:]).write_text(text)
    (units / "tmp.mount").write_text("[Mount]\nWhat=tmpfs\nWhere=/tmp\n")
    (exports / "site.exports").write_text("/opt *(ro)\n")
    assert listed(tmp_path) == (
        StorageFile(EXPORTS, None),
        StorageFile(f"{UNITS}/data.automount", "data"),
        StorageFile(f"{UNITS}/data.mount", "data"),
        StorageFile(f"{UNITS}/home.automount", "home"),
        StorageFile(f"{UNITS}/home.mount", "home"),
    )


def test_what_is_declared_is_no_leftover():
    cluster = served(nfs())
    found = StorageFiles().process([*HOME.splitlines(), *DATA.splitlines(), EXPORTS, "end"])
    assert {file.name for file in undeclared(worker(cluster), found)} == {
        "data.automount",
        "data.mount",
        "rackwright.exports",
    }
    # the server has /home bound, without an automount unit
    assert {file.name for file in undeclared(head(cluster), found)} == {
        "data.automount",
        "data.mount",
        "home.automount",
    }


@pytest.mark.parametrize("lines", [[], HOME.splitlines()])
def test_a_list_that_does_not_end_is_unknown(lines):
    with pytest.raises(UnreadableFiles):
        StorageFiles().process(lines)


def test_a_plan_is_empty_where_everything_is_declared(plan):
    found = plan("gpu1", f"{HOME}end\n")
    assert (found.operations, found.error) == ((), None)
    assert plan("gpu1", HOME).error is not None


def test_what_left_the_declaration_is_unmounted_and_a_worker_is_drained(plan):
    (operation,) = plan("gpu1", f"{HOME}{DATA}end\n").operations
    assert [(one.kind, one.target, one.after, one.disruptive) for one in operation.changes] == [
        ("unit", "data.automount", None, True),
        ("unit", "data.mount", None, True),
    ]
    script = shlex.split(operation.commands[0])[2].splitlines()
    assert [line.partition(" ||")[0] for line in script] == [
        "systemctl disable --quiet data.automount",
        "systemctl stop data.automount",
        "systemctl disable --quiet data.mount",
        "systemctl stop data.mount",
        f"rm -f -- {UNITS}/data.automount {UNITS}/data.mount",
        "systemctl daemon-reload",
    ]


def test_what_left_the_declaration_is_not_exported_any_more(plan):
    (operation,) = plan("gpu1", f"{EXPORTS}\nend\n").operations
    assert [(one.kind, one.target, one.after, one.disruptive) for one in operation.changes] == [
        ("file", EXPORTS, None, False)
    ]
    script = shlex.split(operation.commands[0])[2].splitlines()
    # interrupted before the kernel has dropped them, the next run finds the file again
    assert script == [
        f"echo '# Written by rackwright' >{EXPORTS}",
        "if [ -e /proc/fs/nfsd/exports ]; then exportfs -ra; fi",
        f"rm -f -- {EXPORTS}",
    ]


def test_the_state_of_a_service_is_not_unmounted(plan):
    error = plan("gpu1", f"{DATA}{STATE}end\n").error or ""
    assert f"{UNITS}/state.mount: undeclared, but may hold a service's state" in error
    assert "systemctl disable --now state.mount" in error
