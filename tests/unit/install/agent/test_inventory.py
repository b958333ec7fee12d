"""Readers of /sys."""

from __future__ import annotations

import os

import pytest

from rackwright.install.agent import inventory


def test_pci_functions_and_their_classes(tmp_path):
    for address, device in {
        "0000:00:04.0": ("0x8086", "0x29c0", "0x060000"),
        "0000:3b:00.0": ("0x10de", "0x2330", "0x030200"),
    }.items():
        (tmp_path / address).mkdir()
        for name, value in zip(("vendor", "device", "class"), device, strict=True):
            (tmp_path / address / name).write_text(f"{value}\n")
    assert inventory.pci_devices(str(tmp_path))[1] == {
        "address": "0000:3b:00.0",
        "vendor": "10de",
        "device": "2330",
        "class": "0302",
    }


@pytest.mark.parametrize(("data", "expected"), [(b"\6\0\0\0\1", True), (b"\6\0\0\0\0", False), (b"\6", None)])
def test_secure_boot_is_the_byte_behind_the_attributes(tmp_path, data, expected):
    (tmp_path / "SecureBoot").write_bytes(data)
    assert inventory.secure_boot(str(tmp_path / "SecureBoot")) is expected
    assert inventory.secure_boot(str(tmp_path / "gone")) is None


def test_a_link_that_is_off_is_unknown(tmp_path):
    (tmp_path / "eno1").mkdir()
    (tmp_path / "eno1" / "address").write_text("02:00:00:00:00:01\n")
    (tmp_path / "eno1" / "speed").write_text("-1\n")
    found = inventory.nic("eno1", str(tmp_path))
    assert (found["carrier"], found["speed_mbps"], found["driver"]) == (None, None, None)
    (tmp_path / "eno1" / "carrier").write_text("1\n")
    (tmp_path / "eno1" / "speed").write_text("25000\n")
    found = inventory.nic("eno1", str(tmp_path))
    assert (found["carrier"], found["speed_mbps"]) == (True, 25000)


def test_names_by_path(tmp_path):
    os.symlink("../../nvme0n1", tmp_path / "pci-0000:00:04.0-nvme-1")
    os.symlink("../../nvme0n1p1", tmp_path / "pci-0000:00:04.0-nvme-1-part1")
    assert inventory.paths_of(str(tmp_path))["nvme0n1"] == ["pci-0000:00:04.0-nvme-1"]


def test_the_nearest_pci_function():
    path = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1"
    assert inventory.last_pci_address(path) == "0000:01:00.0"
    assert inventory.last_pci_address("/sys/devices/virtual/block/loop0") is None
