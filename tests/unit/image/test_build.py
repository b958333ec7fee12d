"""Which nodes can have an image, and how a folder is built, found again and kept whole."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli import run as rackwright
from rackwright.errors import ImageError, LabError
from rackwright.image import build as building
from rackwright.image import for_lab, manifest, sandbox
from rackwright.image.build import Order, build, order
from rackwright.image.choice import Choice
from rackwright.model.cluster import Cluster
from rackwright.model.types import NodeRole, Platform
from rackwright.osfamily.known import os_release
from tests.factories import make_cluster, make_node, make_sku
from tests.unit.image.test_documents import _manifest


def _cluster(**changes: Any) -> Cluster:
    values = {"platform": Platform.VM, "os": os_release("debian-13")} | changes
    return make_cluster(make_node("head1", 1, NodeRole.HEAD, primary=True, **values))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a host that has what building needs."""
    monkeypatch.setattr(building, "require", lambda programs, what: None)
    monkeypatch.setattr(building.platform, "machine", lambda: "x86_64")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"os": os_release("rocky-9")}, r"head1 runs rocky-9, but images can be built only of .*debian-13"),
        ({"sku": make_sku(cpu_architecture="aarch64")}, "head1 has a CPU of type aarch64"),
        ({"platform": Platform.CONTAINER}, "head1 is a container, which does not boot from a disk"),
    ],
)
def test_a_node_that_cannot_have_an_image_is_refused_with_the_reason(
    changes: dict[str, Any], message: str
) -> None:
    cluster = _cluster(**changes)

    with pytest.raises(ImageError, match=message):
        order(cluster, cluster.nodes, "disk", 16)


@pytest.mark.usefixtures("here")
def test_nodes_of_two_systems_are_refused_together() -> None:
    one, other = _cluster(), _cluster(os=os_release("debian-12"))

    with pytest.raises(
        ImageError, match="differ in operating system, platform or CPU: debian-12, vm, x86_64; "
    ):
        order(one, (*one.nodes, *other.nodes), "disk", 16)


@pytest.fixture
def wanted(here: None) -> Order:
    cluster = _cluster()
    return Order(cluster, cluster.nodes, cluster.nodes, Choice((), {}, {}), "disk", 16)


def _make(wanted: Order, unfinished: Path, log: Any) -> manifest.Manifest:
    log("making")
    made = _manifest(key=wanted.key)
    manifest.write(made, unfinished / "image")
    return made


def test_an_image_is_built_once_and_found_afterwards(
    wanted: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "_make", _make)
    said: list[str] = []

    first = build(wanted, tmp_path / "image", said.append)
    second = build(wanted, tmp_path / "image", said.append)

    assert first == second
    assert said == ["making"]


def test_a_folder_with_something_else_is_left_alone(
    wanted: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "_make", _make)
    (tmp_path / "image").mkdir()
    (tmp_path / "image/notes").write_text("mine")

    with pytest.raises(ImageError, match="contains something other than this image"):
        build(wanted, tmp_path / "image", print)
    assert (tmp_path / "image/notes").read_text() == "mine"


def test_programs_that_a_disk_needs_are_asked_for_before_anything_is_built(
    wanted: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(building, "require", lambda programs, what: asked.extend(programs))
    monkeypatch.setattr(building, "_make", _make)

    build(wanted, tmp_path / "image", lambda text: None)

    assert {"mmdebstrap", "unshare", "mformat", "qemu-img"} <= set(asked)


def test_a_build_that_fails_leaves_no_folder_and_the_next_removes_what_a_killed_one_left(
    wanted: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(wanted: Order, unfinished: Path, log: Any) -> manifest.Manifest:
        (unfinished / "tree").mkdir()
        raise ImageError("no")

    monkeypatch.setattr(building, "_make", fail)
    with pytest.raises(ImageError, match=r"^no$"):
        build(wanted, tmp_path / "image", print)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".image.lock"]

    (tmp_path / ".image.unfinished/tree").mkdir(parents=True)
    monkeypatch.setattr(building, "_make", _make)
    build(wanted, tmp_path / "image", lambda text: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".image.lock", "image"]


def test_a_command_that_fails_is_named_with_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import subprocess

    monkeypatch.setattr(
        sandbox, "run", lambda argv, **rest: subprocess.CompletedProcess(argv, 1, "reading\n", "E: no\n")
    )
    with pytest.raises(ImageError, match="slurm: Install Slurm failed in the image\nreading\nE: no"):
        sandbox.run_inside(tmp_path, tmp_path, "apt-get", "slurm: Install Slurm")


def test_a_command_that_takes_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(argv: list[str], *, shown: str, **rest: Any) -> None:
        raise LabError(f"{shown} took more than 3600 s")

    monkeypatch.setattr(sandbox, "run", late)
    with pytest.raises(ImageError, match="slurm: Install Slurm took more than 3600 s"):
        sandbox.run_inside(tmp_path, tmp_path, "apt-get", "slurm: Install Slurm")


def _old(folder: Path, days: float) -> Path:
    folder.mkdir(parents=True)
    then = time.time() - days * 86400
    os.utime(folder, (then, then))
    return folder


def test_images_that_no_rack_has_wanted_for_two_weeks_go_unless_a_node_uses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RACKWRIGHT_LAB_DIR", str(tmp_path))
    used, old, new = (
        _old(tmp_path / "boot-images" / name, days) for name, days in (("a", 15), ("b", 15), ("c", 13))
    )
    monkeypatch.setattr(for_lab.image, "in_use", lambda: {str(used / "disk.qcow2")})

    for_lab.sweep()

    assert (used.exists(), old.exists(), new.exists()) == (True, False, True)


def test_nothing_goes_while_it_is_not_known_what_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RACKWRIGHT_LAB_DIR", str(tmp_path))
    old = _old(tmp_path / "boot-images/b", 15)

    def unreadable() -> set[str]:
        raise LabError("damaged")

    monkeypatch.setattr(for_lab.image, "in_use", unreadable)
    for_lab.sweep()
    assert old.exists()


def test_every_virtual_machine_of_a_rack_gets_the_image_of_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RACKWRIGHT_LAB_DIR", str(tmp_path))
    monkeypatch.setattr(for_lab, "order", lambda cluster, nodes, format, size: _Ordered(nodes[0].name))
    built: list[str] = []

    def make(wanted: Any, target: Path, log: Any) -> None:
        built.append(wanted.key)
        target.mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(for_lab, "build", make)
    vm = {"platform": Platform.VM}
    cluster = make_cluster(
        make_node("head1", 1, NodeRole.HEAD, primary=True),
        make_node("worker1", 2, NodeRole.WORKER, **vm),
        make_node("worker2", 3, NodeRole.WORKER, **vm),
    )

    found = for_lab.ensure(cluster, lambda text: None)

    assert found == dict.fromkeys(("worker1", "worker2"), tmp_path / "boot-images/worker1")
    assert built == ["worker1"]


class _Ordered:
    def __init__(self, key: str) -> None:
        self.key = key


def test_the_command_refuses_a_node_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    code = rackwright(["image", "build", "inventory/lab.yaml", "--group", "worker9"])

    assert code == 1
    assert "worker9 is not in cluster lab" in capsys.readouterr().err


def test_the_command_refuses_a_container_rack_with_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    code = rackwright(["image", "build", "inventory/lab.yaml", "--group", "worker1"])

    error = capsys.readouterr().err
    assert code == 1
    assert "worker1 is a container, which does not boot from a disk" in error
    assert "--format oci" in error
