"""Copies of the cluster file, a lost store, another user: no run replaces the secrets of a living cluster."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.racks.program import Ran
from tests.racks.secrets.conftest import keys_on_nodes
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_IN_SYNC = "plan: nothing to change on 3 of 3 nodes"


def another_user(site: Site, folder: Path, *arguments: str) -> Ran:
    """Run the program as a user with neither the state nor the identity of the first."""
    own = (f"XDG_STATE_HOME={folder}/state", f"XDG_CONFIG_HOME={folder}/config")
    return site.tool("env", *own, sys.executable, "-m", "rackwright", *arguments, name="another-user")


@pytest.fixture
def copy(site: Site, tmp_path: Path) -> Path:
    """The cluster file in another folder, with all it names but the secrets."""
    shutil.copytree(site.folder / ".lab", tmp_path / ".lab")
    return Path(shutil.copy(site.file, tmp_path / "cluster.yaml"))


@pytest.mark.smoke
def test_a_copy_under_another_name_finds_the_same_secrets(site: Site):
    copied = site.folder / "copy.yaml"
    shutil.copy(site.file, copied)
    assert site.cli("plan", str(copied)).out.strip() == _IN_SYNC
    assert not list(site.folder.glob("copy.secrets*"))


@pytest.mark.smoke
@pytest.mark.parametrize("command", [("plan",), ("apply", "--yes"), ("apply", "--yes", "--limit", "worker1")])
def test_a_copy_in_another_folder_is_refused(site: Site, copy: Path, command: tuple[str, ...]):
    before = keys_on_nodes(site)
    refused = site.cli(command[0], str(copy), *command[1:], expect=1).err
    assert f"The secrets of cluster {site.name} exist, but not in {copy.parent}" in refused
    assert str(site.folder / f"{site.name}.secrets.age") in refused
    assert keys_on_nodes(site) == before
    assert not list(copy.parent.glob("*.age"))


@pytest.mark.smoke
@pytest.mark.parametrize("command", [("plan",), ("apply", "--yes"), ("apply", "--yes", "--limit", "worker1")])
def test_another_user_without_the_secrets_is_refused(
    site: Site, copy: Path, tmp_path: Path, command: tuple[str, ...]
):
    before = keys_on_nodes(site)
    ran = another_user(site, tmp_path, command[0], str(copy), *command[1:])
    assert ran.status == 1, ran
    if "head1" in ran.err and "worker1" not in command:
        assert "head1: /etc/munge/munge.key" in ran.err
    assert "rackwright apply FILE --new-secrets" in ran.err
    assert keys_on_nodes(site) == before
    assert not list(copy.parent.glob("*.age")), "what was generated for a refused run is gone"


def test_a_lost_store_is_refused_until_its_backup_is_back(site: Site, tmp_path: Path):
    store = site.folder / f"{site.name}.secrets.age"
    backup = tmp_path / "backup.age"
    site.cli("secrets", "backup", str(backup), str(site.file))
    before = keys_on_nodes(site)
    store.unlink()
    for command in (("plan",), ("apply", "--yes"), ("drift",), ("accept", "--yes")):
        refused = site.cli(command[0], str(site.file), *command[1:], expect=1).err
        assert "--new-secrets" in refused, command
        assert not store.exists()
    assert keys_on_nodes(site) == before
    site.cli("secrets", "restore", str(backup), str(site.file))
    assert site.cli("plan", str(site.file)).out.strip() == _IN_SYNC
    assert keys_on_nodes(site) == before
