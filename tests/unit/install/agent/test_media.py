"""The agent's initramfs and the media that it boots from."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from rackwright.errors import ImageError
from rackwright.install import agent_image, agent_tree, cpio, media
from rackwright.node_programs import package_files

CONFIG = json.dumps({"run": "k3x9ab12", "token": "t0ken"}).encode()
MAC = "02:00:00:00:00:01"


def _listed(data: bytes) -> dict[str, tuple[int, bytes]]:
    """Mode and content by name: the format `newc` of cpio(5), read independently of what writes it."""
    found, at = {}, 0
    while True:
        assert data[at : at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        mode, size, length = fields[1], fields[6], fields[11]
        name = data[at + 110 : at + 110 + length - 1].decode()
        start = at + 110 + length
        start += -start % 4
        if name == "TRAILER!!!":
            return found
        found[name] = (mode, data[start : start + size])
        at = start + size
        at += -at % 4


def test_an_archive_holds_modes_and_contents():
    listed = _listed(media.site_archive(CONFIG, b"authority"))
    assert list(listed) == ["rackwright", "rackwright/config.json", "rackwright/ca.pem"]
    assert listed["rackwright"] == (0o40700, b"")
    assert listed["rackwright/config.json"] == (0o100600, CONFIG)


def test_a_tree_is_archived_with_links_and_folders_first(tmp_path):
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/python3").write_bytes(b"12345")
    (tmp_path / "usr/bin/python3").chmod(0o755)
    (tmp_path / "bin").symlink_to("usr/bin")
    target = io.BytesIO()
    cpio.write_tree(tmp_path, target)
    listed = _listed(target.getvalue())
    assert sorted(listed) == ["bin", "usr", "usr/bin", "usr/bin/python3"]
    assert list(listed).index("usr") < list(listed).index("usr/bin") < list(listed).index("usr/bin/python3")
    assert listed["bin"] == (0o120777, b"usr/bin")
    assert listed["usr/bin/python3"] == (0o100755, b"12345")


def test_the_agent_needs_the_standard_library_alone(tmp_path):
    for path, text in package_files(agent_tree.ENTRY).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import {agent_tree.ENTRY} as m; print(m.__file__)"
    done = subprocess.run(
        [sys.executable, "-ISc", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path))


def test_the_agents_code_is_an_archive_with_its_first_program():
    listed = _listed(cpio.archive(agent_tree.code()))
    assert listed["init"][0] == 0o100755
    assert agent_tree.ENTRY in listed["init"][1].decode()
    assert listed["usr/lib/rackwright/lease"][0] == 0o100755
    assert "usr/lib/rackwright/rackwright/install/agent/main.py" in listed
    for path in listed:
        assert "/" not in path or path.rpartition("/")[0] in listed or path.startswith("usr/lib/rackwright")


def test_modules_come_with_what_they_need():
    text = (
        "kernel/drivers/net/ethernet/intel/ice/ice.ko.xz: kernel/lib/libie.ko.xz\n"
        "kernel/lib/libie.ko.xz: kernel/lib/pldmfw.ko.xz\n"
        "kernel/lib/pldmfw.ko.xz:\n"
        "kernel/drivers/gpu/nouveau.ko.xz: kernel/lib/pldmfw.ko.xz\n"
    )
    needed = agent_tree.read_dependencies(text)
    assert agent_tree.wanted(needed) == {"kernel/drivers/net/ethernet/intel/ice/ice.ko.xz"}
    assert agent_tree.closure(needed, agent_tree.wanted(needed)) == set(needed) - {
        "kernel/drivers/gpu/nouveau.ko.xz"
    }


def test_other_code_is_another_image_of_the_same_packages(monkeypatch):
    before = agent_image.base_key(), agent_image.key()
    monkeypatch.setattr(agent_tree, "code", lambda: [cpio.Entry("init", b"other", 0o755)])
    assert agent_image.base_key() == before[0]
    assert agent_image.key() != before[1]
    monkeypatch.setattr(agent_tree, "PACKAGES", ("python3",))
    assert agent_image.base_key() != before[0]


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/notes").touch()
    with pytest.raises(ImageError, match="contains something other"):
        agent_image.build(tmp_path / "agent", print)
    assert (tmp_path / "agent/notes").exists()


def test_nothing_secret_is_on_the_kernels_command_line():
    text = media.grub_config("k3x9ab12", "console=ttyS1,57600")
    assert "linux /vmlinuz console=ttyS1,57600 quiet rackwright.run=k3x9ab12\n" in text
    assert "initrd /agent.img /site.img\n" in text
    assert "t0ken" not in text


@pytest.mark.parametrize("run", ["", "a b", "x;y", "K3X"])
def test_an_id_that_is_none_reaches_no_boot_loader(tmp_path, run, monkeypatch):
    monkeypatch.setattr(media, "require_xorriso", lambda: None)
    with pytest.raises(ImageError, match="not a valid run id"):
        media.make_iso(tmp_path, json.dumps({"run": run}).encode(), b"ca", tmp_path / "iso")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def agent(tmp_path) -> Path:
    folder = tmp_path / "agent"
    folder.mkdir()
    for name in ("vmlinuz", "agent.img", "shimx64.efi", "grubx64.efi"):
        (folder / name).write_text(name)
    return folder


def test_only_machines_that_are_armed_find_something_to_boot(tmp_path, agent):
    served = tmp_path / "served"
    media.netboot_files(
        agent, served, [media.Armed(MAC, CONFIG, b"ca"), media.Armed(MAC[:-1] + "2", CONFIG, b"ca")]
    )
    assert {path.name for path in served.iterdir()} == {
        "vmlinuz",
        "agent.img",
        "shimx64.efi",
        "grubx64.efi",
        "grub",
    }
    assert f"initrd /agent.img /grub/mac/{MAC}.img" in (served / "grub/mac" / MAC).read_text()
    assert _listed((served / f"grub/mac/{MAC}.img").read_bytes())["rackwright/config.json"][1] == CONFIG
    assert "exit" in (served / "grub/grub.cfg").read_text()

    media.netboot_files(agent, served, [media.Armed(MAC, CONFIG, b"ca")])
    assert {path.name for path in (served / "grub/mac").iterdir()} == {MAC, f"{MAC}.img"}
    media.netboot_files(agent, served, [])
    assert list((served / "grub/mac").iterdir()) == []


@pytest.mark.parametrize("mac", ["../../etc/passwd", "02-00-00-00-00-01", "02:00:00:00:00:0A"])
def test_what_is_no_mac_address_names_no_file(tmp_path, agent, mac):
    with pytest.raises(ImageError, match="not a valid lower-case MAC address"):
        media.netboot_files(agent, tmp_path / "served", [media.Armed(mac, CONFIG, b"ca")])
    assert not (tmp_path / "served").exists()
