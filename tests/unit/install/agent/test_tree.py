"""Files of a node, written below the folder where its root is mounted and nowhere else."""

from __future__ import annotations

import os

import pytest

from rackwright.install.agent import tree
from rackwright.install.agent.order import File, Folder
from rackwright.install.agent.programs import AgentError


def _file(path, content="x\n", mode=0o640):
    return File(path, content, mode, os.getuid(), os.getgid())


def test_a_file_has_its_mode_and_content(tmp_path):
    tree.write(str(tmp_path), _file("/etc/sudoers.d/90-admin", "admin ALL\n", 0o440))
    written = tmp_path / "etc/sudoers.d/90-admin"
    assert written.read_text() == "admin ALL\n"
    assert written.stat().st_mode & 0o7777 == 0o440
    assert [path.name for path in written.parent.iterdir()] == ["90-admin"]


def test_folders_have_their_modes_whether_they_are_new_or_not(tmp_path):
    (tmp_path / "home").mkdir(mode=0o755)
    (tmp_path / "home/admin").mkdir(mode=0o777)
    for path, mode in (("/home/admin", 0o750), ("/home/admin/.ssh", 0o700)):
        tree.make_folder(str(tmp_path), Folder(path, mode, os.getuid(), os.getgid()))
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "home/admin").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "home/admin/.ssh").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("pointed", ["/outside", "../../../../outside"])
def test_links_of_the_image_do_not_lead_out_of_it(tmp_path, pointed):
    root, outside = tmp_path / "target", tmp_path / "outside"
    (root / "etc").mkdir(parents=True)
    outside.mkdir()
    os.symlink(pointed, root / "etc/ssh")
    tree.write(str(root), _file("/etc/ssh/sshd_config"))
    assert list(outside.iterdir()) == []
    assert (root / "outside/sshd_config").exists()


def test_a_link_in_place_of_the_file_is_replaced(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "elsewhere").write_text("kept\n")
    os.symlink("../elsewhere", tmp_path / "etc/resolv.conf")
    tree.write(str(tmp_path), _file("/etc/resolv.conf", "new\n"))
    assert (tmp_path / "etc/resolv.conf").read_text() == "new\n"
    assert not (tmp_path / "etc/resolv.conf").is_symlink()
    assert (tmp_path / "elsewhere").read_text() == "kept\n"


def test_links_in_a_circle_end(tmp_path):
    os.symlink("b", tmp_path / "a")
    os.symlink("a", tmp_path / "b")
    with pytest.raises(AgentError, match="too many links"):
        tree.inside(str(tmp_path), "/a/file")


def test_missing_programs_are_named_by_their_packages(tmp_path):
    (tmp_path / "usr/sbin").mkdir(parents=True)
    (tmp_path / "usr/sbin/mdadm").touch()
    tree.require_programs(str(tmp_path), [("mdadm", "mdadm")])
    with pytest.raises(AgentError, match="with the package cryptsetup-initramfs, lvm2 "):
        tree.require_programs(str(tmp_path), [("lvm", "lvm2"), ("cryptsetup", "cryptsetup-initramfs")])
