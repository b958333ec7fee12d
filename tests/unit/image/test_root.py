"""A tree as the archive that is installed, and what the declared disks add to it."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from rackwright.errors import LabError
from rackwright.image import root
from rackwright.install.agent.order import Image
from rackwright.install.agent.unpack import unpack
from rackwright.model.install import DiskRule, Encryption, Install, Volumes
from tests.factories import make_node

_LOADERS = ("usr/lib/shim/shimx64.efi.signed", "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed")


def _node(**changes):
    return make_node(
        "worker1", 1, install=Install(image=Path("/images/root"), disk=DiskRule(model="M1"), **changes)
    )


@pytest.mark.parametrize(
    ("changes", "packages"),
    [
        ({}, ()),
        ({"mirror": True}, ("mdadm",)),
        ({"mirror": True, "volumes": Volumes.LVM}, ("lvm2", "mdadm")),
        (
            {"encryption": Encryption.TPM2},
            ("clevis-initramfs", "clevis-luks", "clevis-tpm2", "cryptsetup-initramfs"),
        ),
        (
            {"encryption": Encryption.TANG, "tang": "http://10.0.0.5"},
            ("clevis-initramfs", "clevis-luks", "cryptsetup-initramfs"),
        ),
        ({"diskless": True}, ()),
    ],
)
def test_the_layout_says_what_the_image_needs(changes, packages):
    assert root.layout_packages([make_node("head1", 2), _node(**changes)]) == packages


def test_an_image_has_what_any_of_its_nodes_needs():
    assert root.layout_packages([_node(mirror=True), _node(volumes=Volumes.LVM)]) == ("lvm2", "mdadm")


@pytest.fixture
def tree(tmp_path):
    made = tmp_path / "tree"
    for path in (
        *_LOADERS,
        "boot/vmlinuz-6.12-amd64",
        "boot/initrd.img-6.12-amd64",
        "dev/null",
        "etc/shadow",
    ):
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).write_text(path)
    os.link(made / "etc/shadow", made / "etc/shadow-")
    (made / "bin").symlink_to("usr/bin")
    return made


def test_the_archive_has_the_tree_without_what_a_running_system_makes(tree, tmp_path):
    assert root.write_root(tree, tmp_path / root.NAME) == "6.12-amd64"
    listed = subprocess.run(
        ["tar", "--list", "--verbose", "--numeric-owner", f"--file={tmp_path / root.NAME}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert " ./boot/vmlinuz-6.12-amd64\n" in listed
    assert " ./bin -> usr/bin\n" in listed
    assert " ./dev/\n" in listed
    assert "./dev/null" not in listed
    assert f" {os.getuid()}/{os.getgid()} " in listed


@pytest.mark.parametrize(
    ("missing", "said"), [(_LOADERS[0], "has no boot loader"), ("boot/vmlinuz-6.12-amd64", "no kernel")]
)
def test_a_tree_that_cannot_boot_is_refused(tree, tmp_path, missing, said):
    (tree / missing).unlink()
    with pytest.raises(LabError, match=said):
        root.write_root(tree, tmp_path / root.NAME)
    assert not (tmp_path / root.NAME).exists()


def test_extended_attributes_reach_the_node(tree, tmp_path):
    marked, target = tree / "usr/bin/ping", tmp_path / "target"
    marked.parent.mkdir()
    marked.write_text("ping")
    try:
        os.setxattr(marked, "user.rackwright", b"kept")
    except OSError as error:
        pytest.skip(f"no extended attributes here: {error}")
    root.write_root(tree, tmp_path / root.NAME)
    data = (tmp_path / root.NAME).read_bytes()
    target.mkdir()
    unpack([data], Image(len(data), hashlib.sha256(data).hexdigest(), root.NAME), str(target))
    assert os.getxattr(target / "usr/bin/ping", "user.rackwright") == b"kept"
