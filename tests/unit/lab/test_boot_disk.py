"""The files that make a disk boot, and what is said about a tree that cannot."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rackwright.errors import LabError
from rackwright.lab import boot_disk
from rackwright.lab.boot_disk import (
    arguments_of,
    assignments,
    default_first,
    fstab,
    grub_config,
    grub_settings,
    installed_kernels,
    make_boot_disk,
)
from rackwright.render import render

UUID = "6c7a5a1e-0000-4000-8000-000000000001"


def _tree(root: Path, *kernels: str) -> Path:
    (root / "boot").mkdir(parents=True)
    for kernel in kernels:
        (root / "boot" / f"vmlinuz-{kernel}").touch()
        (root / "boot" / f"initrd.img-{kernel}").touch()
    return root


def test_the_menu_names_kernels_as_update_grub_does_so_that_the_default_can_be_read() -> None:
    text = grub_config(UUID, ["6.12.117+deb13-amd64", "6.12.9-amd64"], "console=ttyS0,115200")

    assert 'set default="Debian GNU/Linux, with Linux 6.12.117+deb13-amd64"\n' in text
    assert text.count("menuentry ") == 2
    assert f"\tlinux\t/boot/vmlinuz-6.12.9-amd64 root=UUID={UUID} ro console=ttyS0,115200\n" in text
    assert "\tinitrd\t/boot/initrd.img-6.12.9-amd64\n" in text
    assert "timeout=0" in text


def test_a_line_without_arguments_ends_without_a_blank() -> None:
    assert f"root=UUID={UUID} ro\n" in grub_config(UUID, ["6.1.0-1-amd64"], "")


def test_the_root_is_mounted_by_uuid_and_a_missing_efi_partition_does_not_stop_the_boot() -> None:
    root, esp = fstab(UUID).splitlines()

    assert root.split()[:3] == [f"UUID={UUID}", "/", "ext4"]
    assert esp.split()[:2] == ["LABEL=ESP", "/boot/efi"]
    assert "nofail" in esp


def test_kernels_come_newest_first_and_only_with_their_initramfs(tmp_path: Path) -> None:
    tree = _tree(tmp_path, "6.12.9-amd64", "6.12.117+deb13-amd64", "6.1.0-50-amd64")
    (tree / "boot/vmlinuz-6.13.0-amd64").touch()

    assert installed_kernels(tree) == ["6.12.117+deb13-amd64", "6.12.9-amd64", "6.1.0-50-amd64"]


def test_a_tree_without_a_kernel_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="has no kernel with an initramfs below /boot") as refused:
        installed_kernels(_tree(tmp_path))
    assert "bare metal" in (refused.value.hint or "")


def test_a_tree_without_a_boot_loader_is_refused_with_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boot_disk, "require", lambda programs: None)
    tree = _tree(tmp_path / "tree", "6.1.0-50-amd64")

    with pytest.raises(LabError, match=r"/usr/lib/shim/shimx64\.efi\.signed") as refused:
        make_boot_disk(tree, tmp_path / "disk.qcow2", 4)
    assert "shim-signed" in (refused.value.hint or "")
    assert not (tmp_path / "disk.qcow2").exists()


def test_arguments_of_a_drop_in_are_added_to_those_before_it() -> None:
    first = assignments('GRUB_TIMEOUT=0\nGRUB_CMDLINE_LINUX="console=ttyS0,115200"\n', {})
    second = assignments(
        '# ours\nGRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX iommu=pt"\nGRUB_DEFAULT="a>b"\n', first
    )

    assert second["GRUB_CMDLINE_LINUX"] == "console=ttyS0,115200 iommu=pt"
    assert second["GRUB_TIMEOUT"] == "0"
    assert second["GRUB_DEFAULT"] == "a>b"


def test_the_kernel_that_a_role_chose_boots_and_not_the_newest(tmp_path: Path) -> None:
    tree = _tree(tmp_path, "6.12.117-amd64", "6.1.0-50-amd64", "6.1.0-5-amd64")
    folder = tree / "etc/default/grub.d"
    folder.mkdir(parents=True)
    (tree / "etc/default/grub").write_text(
        'GRUB_DEFAULT=0\nGRUB_DISTRIBUTOR=Debian\nGRUB_CMDLINE_LINUX="console=ttyS0"\n'
    )
    (folder / "90-rackwright-kernel.cfg").write_text(
        render("kernel/grub.cfg.j2", kernel="6.1.0-50-amd64", arguments=(), remove=())
    )
    (folder / "rackwright.cfg.dpkg-old").write_text("GRUB_DEFAULT=7\n")

    settings = grub_settings(tree)

    assert default_first(installed_kernels(tree), settings["GRUB_DEFAULT"]) == [
        "6.1.0-50-amd64",
        "6.12.117-amd64",
        "6.1.0-5-amd64",
    ]
    assert settings["GRUB_CMDLINE_LINUX"] == "console=ttyS0"
    assert default_first(["a", "b"], "0") == ["a", "b"]


def test_the_first_boot_has_the_arguments_that_update_grub_would_give_it(tmp_path: Path) -> None:
    folder = tmp_path / "etc/default/grub.d"
    folder.mkdir(parents=True)
    (tmp_path / "etc/default/grub").write_text(
        'GRUB_CMDLINE_LINUX="console=ttyS0 quiet"\nGRUB_CMDLINE_LINUX_DEFAULT="splash=1"\n'
    )
    text = render(
        "kernel/grub.cfg.j2", kernel=None, arguments=("iommu=pt", "x=7"), remove=("quiet", "splash")
    )
    (folder / "90-rackwright-kernel.cfg").write_text(text)
    script = f'. {tmp_path}/etc/default/grub; {text}echo $GRUB_CMDLINE_LINUX "$GRUB_CMDLINE_LINUX_DEFAULT"'
    by_shell = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=True, timeout=60)

    found = arguments_of(grub_settings(tmp_path))

    assert found == "console=ttyS0 iommu=pt x=7"
    assert found.split() == by_shell.stdout.split()
