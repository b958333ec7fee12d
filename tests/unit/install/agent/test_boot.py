"""Texts that lead from the firmware to the node's kernel."""

from __future__ import annotations

import pytest

from rackwright.install.agent import boot, encryption
from rackwright.install.agent.boot import Places
from rackwright.install.agent.guard import Network
from rackwright.install.agent.order import Encryption
from rackwright.lab import boot_disk

PLAIN = Places("aaaa", None, "E5B0-0001", "UUID=aaaa")
VOLUMES = Places("aaaa", "bbbb", "E5B0-0001", "/dev/mapper/system_k3x9ab12-root")


def test_a_plain_disk_boots_as_an_image_of_the_lab_does():
    assert boot.grub_config(PLAIN, ["6.12-amd64"], "console=ttyS0") == boot_disk.grub_config(
        "aaaa", ["6.12-amd64"], "console=ttyS0"
    )


def test_kernels_of_a_boot_file_system_have_no_folder_before_them():
    text = boot.grub_config(VOLUMES, ["6.12-amd64"], "quiet")
    assert "--set=root bbbb" in text
    assert "linux\t/vmlinuz-6.12-amd64 root=/dev/mapper/system_k3x9ab12-root ro quiet" in text
    assert boot.esp_config(VOLUMES).splitlines()[:2] == [
        "search.fs_uuid bbbb root",
        "set prefix=($root)/grub",
    ]
    assert boot.esp_config(PLAIN).splitlines()[:2] == [
        "search.fs_uuid aaaa root",
        "set prefix=($root)/boot/grub",
    ]


def test_the_table_of_file_systems():
    assert boot.fstab(PLAIN).splitlines() == [
        "UUID=aaaa / ext4 defaults,errors=remount-ro 0 1",
        "UUID=E5B0-0001 /boot/efi vfat umask=0077,nofail 0 1",
    ]
    assert "UUID=bbbb /boot ext4 defaults 0 2\n" in boot.fstab(VOLUMES)


@pytest.mark.parametrize(
    ("image", "ordered", "expected"),
    [
        (
            "console=tty0 console=ttyS0,115200",
            "rackwright.run=x",
            "console=tty0 console=ttyS0,115200 rackwright.run=x",
        ),
        # the last console= is /dev/console
        (
            "console=ttyS0,115200 panic=30",
            "console=tty0 console=ttyS0,115200",
            "panic=30 console=tty0 console=ttyS0,115200",
        ),
        ("", "a a b", "a b"),
    ],
)
def test_of_words_that_stand_twice_the_last_counts(image, ordered, expected):
    assert boot.arguments(image, ordered) == expected


def test_only_entries_of_an_earlier_installation_are_removed():
    # efibootmgr 18
    text = (
        "BootCurrent: 0001\nTimeout: 0 seconds\nBootOrder: 0001,0000\n"
        "Boot0000* UiApp\tFvVol(7cb8bdc9)/FvFile(462caa21)\n"
        "Boot0001* rackwright\tHD(1,GPT,ba77)/\\EFI\\debian\\shimx64.efi\n"
        "Boot0002* rackwright 2\tHD(1,GPT,ba78)/\\EFI\\debian\\shimx64.efi\n"
        "Boot0003* debian\tHD(1,GPT,ba79)/\\EFI\\debian\\shimx64.efi\n"
    )
    assert boot.old_entries(text) == ["0001", "0002"]


def test_arrays_are_assembled_under_any_host_name():
    assert boot.arrays("ARRAY /dev/md0 metadata=1.2 UUID=1:2\n\n").splitlines() == [
        "HOMEHOST <ignore>",
        "MAILADDR root",
        "ARRAY /dev/md0 metadata=1.2 UUID=1:2",
    ]


def test_what_unlocks_the_root():
    assert encryption.crypttab("cccc") == "root_crypt UUID=cccc none luks,discard,initramfs\n"
    tpm = Encryption("tpm2", "s3cret", None, None)
    tang = Encryption("tang", "s3cret", "http://10.0.0.5", "th-mb")
    assert encryption.pin(tpm) == ("tpm2", '{"pcr_bank": "sha256", "pcr_ids": "7"}')
    assert encryption.pin(tang) == ("tang", '{"url": "http://10.0.0.5", "thp": "th-mb"}')
    assert ("clevis-encrypt-tpm2", "clevis-tpm2") in encryption.needed(tpm)
    assert ("clevis-encrypt-tang", "clevis") in encryption.needed(tang)


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (Network("m", "10.0.0.2/24", "10.0.0.1", None), "ip=10.0.0.2::10.0.0.1:255.255.255.0::eno1:none"),
        (Network("m", "10.0.0.2/24", None, 12), "ip=10.0.0.2:::255.255.255.0::vlan12:none vlan=vlan12:eno1"),
        (Network("m", None, None, None), "ip=:::::eno1:dhcp"),
    ],
)
def test_how_the_initramfs_reaches_a_tang_server(network, expected):
    assert encryption.network_argument(network, "eno1") == expected
