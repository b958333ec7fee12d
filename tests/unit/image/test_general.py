"""A tree that was one machine's becomes general, and a secret that is left is found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rackwright.errors import ImageError
from rackwright.image.choice import Written
from rackwright.image.general import make_general, private_keys, refuse_secrets
from rackwright.image.install import write

_OF_ONE_MACHINE = (
    "etc/ssh/ssh_host_ed25519_key",
    "etc/munge/munge.key",
    "etc/hostname",
    "usr/sbin/policy-rc.d",
    "var/lib/apt/lists/archive_InRelease",
    "var/lib/dkms/mok.key",
    "var/lib/systemd/random-seed",
    "var/log/apt/history.log",
    "var/log/dpkg.log",
    "var/cache/apt/archives/jq.deb",
    "tmp/left",
)


def _file(tree: Path, path: str, text: str = "x") -> Path:
    file = tree / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_identity_logs_and_caches_go_and_configuration_stays(tmp_path: Path) -> None:
    for path in (*_OF_ONE_MACHINE, "etc/machine-id", "var/log/wtmp", "etc/slurm/plugstack.conf"):
        _file(tmp_path, path)
    (tmp_path / "var/log/link").symlink_to("/etc/passwd")

    make_general(tmp_path)

    assert [path for path in _OF_ONE_MACHINE if (tmp_path / path).exists()] == []
    assert (tmp_path / "etc/machine-id").read_text() == ""
    assert (tmp_path / "var/log/wtmp").read_text() == ""
    assert (tmp_path / "etc/slurm/plugstack.conf").read_text() == "x"
    assert (tmp_path / "var/log/link").is_symlink()
    assert (tmp_path / "var/lib/apt/lists").is_dir()


def test_the_first_boot_does_not_make_again_what_the_packages_have_made(tmp_path: Path) -> None:
    for folder in ("etc", "usr", "var"):
        (tmp_path / folder).mkdir()
    os.utime(tmp_path / "usr", ns=(0, 1_700_000_000_000_000_001))
    make_general(tmp_path)
    for name in ("etc/.updated", "var/.updated"):  # systemd compares them with /usr
        assert (tmp_path / name).stat().st_mtime_ns == 1_700_000_000_000_000_001


def test_a_private_key_that_a_package_made_is_refused_by_name(tmp_path: Path) -> None:
    _file(tmp_path, "etc/thing/key.pem", "text\n-----BEGIN EC PRIVATE KEY-----\nabc\n")
    _file(tmp_path, "var/lib/age.txt", "AGE-SECRET-KEY-1ABC\n")
    _file(tmp_path, "etc/ssl/certs/ca.pem", "-----BEGIN CERTIFICATE-----\n")
    _file(tmp_path, "usr/share/doc/example.pem", "-----BEGIN PRIVATE KEY-----\n")

    assert private_keys(tmp_path) == ["/etc/thing/key.pem", "/var/lib/age.txt"]
    with pytest.raises(ImageError, match=r"/etc/thing/key\.pem, /var/lib/age\.txt"):
        refuse_secrets(tmp_path)


def test_a_file_gets_the_ids_that_its_owner_has_in_the_tree(tmp_path: Path) -> None:
    _file(tmp_path, "etc/passwd", "root:x:0:0::/root:/bin/sh\nmunge:x:440:440::/:/bin/false\n")
    _file(tmp_path, "etc/group", "root:x:0:\nmunge:x:441:\n")

    write(Written("/etc/modprobe.d/a.conf", 0o640, "munge", "munge", "options a\n"), tmp_path)
    write(Written("/etc/modprobe.d/sub", 0o750, "root", "munge", None), tmp_path)

    file, folder = tmp_path / "etc/modprobe.d/a.conf", tmp_path / "etc/modprobe.d/sub"
    assert (file.stat().st_uid, file.stat().st_gid, file.stat().st_mode & 0o7777) == (440, 441, 0o640)
    assert (folder.stat().st_gid, folder.stat().st_mode & 0o7777) == (441, 0o750)
    with pytest.raises(ImageError, match="slurm is not in /etc/passwd of the image"):
        write(Written("/etc/modprobe.d/b.conf", 0o644, "slurm", "root", ""), tmp_path)
