"""Mounting a filesystem of storage_layout: never over a folder that holds anything."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api.exceptions import OperationError

from rackwright.facts.block_devices import BlockDevices
from rackwright.facts.block_records import Mount, Storage
from rackwright.facts.settings import Answer
from rackwright.facts.users import User
from rackwright.operations import filesystems, mounts

MOUNTED = {"/data": Mount("/dev/md127", "xfs", frozenset({"rw"}))}


class Host:
    """Stands for pyinfra's host; `asked` lists the facts in order."""

    def __init__(self, mounted: dict[str, Mount], first: str | None, home: str) -> None:
        self.answers = {
            BlockDevices: Storage(True, mounts=mounted),
            Answer: first,
            User: SimpleNamespace(home=home),
        }
        self.asked: list[Any] = []

    def get_fact(self, fact: Any, **_: Any) -> Any:
        self.asked.append(fact)
        return self.answers[fact]


def mounting(
    monkeypatch: pytest.MonkeyPatch,
    *,
    mounted: dict[str, Mount] | None = None,
    first: str | None = "empty",
    home: str = "/var/lib/admin",
    offline: bool = False,
    path: str = "/data",
) -> tuple[list[Any], list[dict[str, Any]]]:
    """The facts that were read, and what the mount unit was asked for."""
    host, units = Host(mounted or {}, first, home), []
    site = SimpleNamespace(offline=offline, cluster=SimpleNamespace(ssh=SimpleNamespace(user="admin")))
    for module in (filesystems, mounts):
        monkeypatch.setattr(module, "host", host)
        monkeypatch.setattr(module, "site_of", lambda: site)
    unit = SimpleNamespace(_inner=lambda **options: units.append(options) or iter(()))
    monkeypatch.setattr(filesystems.units, "unit", unit)
    assert list(filesystems.mounted._inner(path=path, unit_file=f"/etc/systemd/system{path}.mount")) == []
    return host.asked, units


def test_an_empty_folder_is_mounted_on(monkeypatch):
    asked, units = mounting(monkeypatch)
    assert asked == [BlockDevices, User, Answer]
    assert units == [{"unit": "data.mount", "reload_on": ("/etc/systemd/system/data.mount",)}]


def test_on_a_node_where_it_is_mounted_nothing_else_is_read(monkeypatch):
    asked, units = mounting(monkeypatch, mounted=MOUNTED, first="/data/x", home="/data/admin")
    assert asked == [BlockDevices]
    assert len(units) == 1


def test_an_offline_plan_reads_nothing(monkeypatch):
    asked, units = mounting(monkeypatch, first=None, offline=True)
    assert asked == []
    assert len(units) == 1


def test_a_folder_that_holds_anything_is_refused(monkeypatch):
    message = "/data is not empty (it holds /data/ibdata1), and a filesystem mounted there would hide that: move it away"
    with pytest.raises(OperationError, match=re.escape(message)):
        mounting(monkeypatch, first="/data/ibdata1")


def test_a_folder_that_cannot_be_read_is_refused(monkeypatch):
    with pytest.raises(OperationError, match="whether /data is empty cannot be read"):
        mounting(monkeypatch, first=None)


@pytest.mark.parametrize("home", ["/home", "/home/admin"])
def test_the_home_of_the_login_is_not_hidden(monkeypatch, home):
    with pytest.raises(OperationError, match=f"/home would hide {home}, the home of admin"):
        mounting(monkeypatch, path="/home", home=home)


def said(path: Path | str) -> str:
    command = Answer().command(filesystems._FIRST_ENTRY.format(path=path))
    return subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True).stdout.strip()


def test_what_the_node_answers(tmp_path):
    folder = tmp_path / "data"
    assert said(folder) == "empty"
    folder.mkdir()
    assert said(folder) == "empty"
    (folder / "lost+found").mkdir()
    (folder / "lost+found" / "x").touch()
    assert said(folder) == "empty"
    (folder / ".hidden").touch()
    assert said(folder) == f"{folder}/.hidden"
    assert said("/proc") == "mounted"
