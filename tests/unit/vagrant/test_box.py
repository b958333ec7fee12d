"""vagrant/box: boxes of a boot image."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from tests.unit.vagrant.conftest import ROOT

Box = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.skipif(
    shutil.which("qemu-img") is None, reason="UNKNOWN: qemu-img is not installed (apt install qemu-utils)"
)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A boot image's folder with an empty disk of 2.5 GiB."""
    folder = tmp_path / "image"
    folder.mkdir()
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", folder / "disk.qcow2", "2560M"], check=True)
    (folder / "manifest.json").write_text('{"kernel": "6.12"}\n')
    return folder


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """Runs vagrant/box; the box is out.box in a folder that does not exist yet."""

    def box(image: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [
            str(ROOT / "vagrant/box"),
            str(image),
            "--out",
            str(tmp_path / "boxes/out.box"),
            *arguments,
        ]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    return box


def members(path: Path) -> dict[str, bytes]:
    """The files of a box."""

    def content(file: IO[bytes] | None) -> bytes:
        assert file is not None
        return file.read()

    with tarfile.open(path) as tar:
        return {name: content(tar.extractfile(name)) for name in tar.getnames()}


def test_libvirts_box_is_the_image(box: Box, image: Path, tmp_path: Path) -> None:
    done = box(image)
    assert done.returncode == 0, done.stderr
    found = members(tmp_path / "boxes/out.box")
    # rounded up: a disk that is smaller than its image would be cut off
    assert json.loads(found["metadata.json"]) == {"provider": "libvirt", "format": "qcow2", "virtual_size": 3}
    assert found["box.img"] == (image / "disk.qcow2").read_bytes()
    assert json.loads(found["manifest.json"]) == {"kernel": "6.12"}
    assert b"insert_key = false" in found["Vagrantfile"]
    assert list((tmp_path / "boxes").iterdir()) == [tmp_path / "boxes/out.box"]


def test_virtualbox_and_vmware_get_their_own_disk(box: Box, image: Path, tmp_path: Path) -> None:
    assert box(image, "--provider", "virtualbox").returncode == 0
    found = members(tmp_path / "boxes/out.box")
    assert json.loads(found["metadata.json"]) == {"provider": "virtualbox"}
    assert f'ovf:capacity="{2560 << 20}"'.encode() in found["box.ovf"]
    assert f'ovf:size="{len(found["box-disk001.vmdk"])}"'.encode() in found["box.ovf"]
    assert found["box-disk001.vmdk"][:4] == b"KDMV"
    assert box(image, "--provider", "vmware_desktop").returncode == 0
    found = members(tmp_path / "boxes/out.box")
    assert json.loads(found["metadata.json"]) == {"provider": "vmware_desktop"}
    assert b'firmware = "efi"' in found["box.vmx"]


def test_a_folder_without_an_image_is_refused(box: Box, tmp_path: Path) -> None:
    done = box(tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {tmp_path} has no disk.qcow2\nhint: rackwright image build")
    assert not (tmp_path / "boxes").exists()


def test_a_disk_of_another_format_or_half_a_disk_is_refused(box: Box, image: Path, tmp_path: Path) -> None:
    base = image / "disk.qcow2"
    base.rename(image / "base.qcow2")
    overlay = ["-f", "qcow2", "-F", "qcow2", "-b", str(image / "base.qcow2")]
    subprocess.run(["qemu-img", "create", "-q", *overlay, base], check=True)
    assert f"{base} needs {image}/base.qcow2 beneath it" in box(image).stderr
    base.write_bytes(b"\0" * 4096)
    assert f"{base} is raw, not qcow2" in box(image).stderr
    assert not (tmp_path / "boxes/out.box").exists()


def test_a_failed_conversion_leaves_no_box(
    box: Box, image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.which("qemu-img")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/qemu-img"
    program.write_text(f'#!/bin/sh\n[ "$1" = info ] && exec {real} "$@"\necho "no space left" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin", prepend=":")
    done = box(image, "--provider", "virtualbox")
    assert done.returncode == 1
    assert done.stderr.startswith("error: qemu-img convert")
    assert "no space left" in done.stderr
    assert list((tmp_path / "boxes").iterdir()) == []
