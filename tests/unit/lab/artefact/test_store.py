"""The artefact is built once, by one builder, and kept as long as a rack serves it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rackwright.errors import LabError
from rackwright.lab import cgroup, names, sources
from rackwright.lab.artefact import recipe as recipes
from rackwright.lab.artefact import store
from rackwright.lab.artefact.recipe import Recipe
from rackwright.lab.artefact.tree import Builder

Log = Callable[[str], None]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Keys of what was built; builds take no time and need no root."""
    built: list[str] = []

    def build(wanted: Recipe, folder: Path, builder: Builder, log: Log) -> None:
        built.append(wanted.key)
        folder.mkdir()
        (folder / "artefact.json").write_text("{}")

    monkeypatch.setenv("RACKWRIGHT_LAB_DIR", str(tmp_path / "lab"))
    monkeypatch.setattr(names, "RUNTIME", tmp_path / "run")
    monkeypatch.setattr(sources, "KEYRING", tmp_path)
    monkeypatch.setattr(cgroup, "create", lambda *_: [])
    monkeypatch.setattr(cgroup, "remove", lambda *_: None)
    monkeypatch.setattr(store, "require", lambda *_: None)
    monkeypatch.setattr(store, "build", build)
    wanted(monkeypatch, "http://mirror.example/debian")
    return built


def wanted(monkeypatch: pytest.MonkeyPatch, mirror: str) -> Recipe:
    """Make this the recipe of the machine."""
    one = Recipe((f"deb {mirror} a main",), (f"deb {mirror} b main",), ())
    monkeypatch.setattr(store, "recipe", lambda: one)
    return one


def test_it_is_built_once(made: list[str]):
    log: list[str] = []
    with store.held(log.append) as folder:
        assert (folder / "artefact.json").is_file()
    with store.held(log.append) as again:
        assert again == folder
    assert made == [folder.name.removeprefix("kubernetes-")]
    assert log == ["building Kubernetes from Debian's source (once, 10 to 20 minutes on two cores)"]


def test_two_builders_make_one(made: list[str]):
    def hold() -> None:
        with store.held(lambda _: None):
            pass

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(made) == 1


def test_a_failed_build_leaves_nothing_that_counts(
    made: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def fail(wanted: Recipe, folder: Path, builder: Builder, log: Log) -> None:
        folder.mkdir()
        raise LabError("the mirror does not answer")

    working = store.build
    monkeypatch.setattr(store, "build", fail)
    with pytest.raises(LabError, match="the mirror does not answer"), store.held(lambda _: None):
        pass
    assert [path.name for path in (tmp_path / "lab/artefacts").glob("kubernetes-*")] == []
    monkeypatch.setattr(store, "build", working)
    with store.held(lambda _: None) as folder:
        assert folder.is_dir()
    assert list((tmp_path / "lab/artefacts").glob(".*unfinished")) == []


def test_an_old_one_stays_while_a_rack_serves_it(made: list[str], monkeypatch: pytest.MonkeyPatch):
    with store.held(lambda _: None) as old:
        names.rack_state("r").mkdir(parents=True)
        store.claim("r", old)
    wanted(monkeypatch, "http://other.example/debian")
    with store.held(lambda _: None) as new:
        assert new != old
    os.utime(old, (1, 1))
    store.sweep()
    assert old.is_dir()
    (names.rack_state("r") / "artefact.json").unlink()
    store.sweep()
    assert not old.exists()
    assert new.is_dir()


def test_one_that_was_used_lately_stays(made: list[str], monkeypatch: pytest.MonkeyPatch):
    with store.held(lambda _: None) as old:
        pass
    wanted(monkeypatch, "http://other.example/debian")
    os.utime(old, (1, 1))
    wanted(monkeypatch, "http://mirror.example/debian")
    with store.held(lambda _: None) as again:
        assert again == old
    wanted(monkeypatch, "http://other.example/debian")
    store.sweep()
    assert old.is_dir()


def test_unreadable_state_keeps_everything(made: list[str], monkeypatch: pytest.MonkeyPatch):
    with store.held(lambda _: None) as old:
        pass
    names.rack_state("r").mkdir(parents=True)
    (names.rack_state("r") / "artefact.json").write_text("{")
    os.utime(old, (1, 1))
    store.sweep()
    assert old.is_dir()


def test_a_missing_keyring_is_named(made: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(sources, "KEYRING", tmp_path / "missing.gpg")
    with (
        pytest.raises(LabError, match=r"missing\.gpg is missing: apt-get install"),
        store.held(lambda _: None),
    ):
        pass


def test_the_key_follows_sources_and_programs(monkeypatch: pytest.MonkeyPatch):
    one = Recipe(("deb a",), (), ())
    assert one.key == Recipe(("deb a",), (), ()).key
    assert one.key.startswith("1.20.2-")
    assert one.key != Recipe(("deb b",), (), ()).key
    key = one.key
    monkeypatch.setattr(recipes, "template_source", lambda name: "changed")
    assert one.key != key
