"""The image unpacked while it arrives."""

from __future__ import annotations

import hashlib
import subprocess

import pytest

from rackwright.install.agent import unpack
from rackwright.install.agent.order import Image
from rackwright.install.agent.programs import AgentError


@pytest.fixture
def packed(tmp_path):
    tree = tmp_path / "tree"
    (tree / "etc").mkdir(parents=True)
    (tree / "etc/hostname").write_text("general\n")
    (tree / "usr/share/doc").mkdir(parents=True)
    (tree / "usr/share/doc/large").write_bytes(bytes(3 << 20))
    (tree / "etc/shadow").write_text("root:*\n")
    (tree / "etc/shadow").chmod(0o640)
    argv = ["tar", "--create", "--use-compress-program=zstd", "--directory", str(tree), "."]
    return subprocess.run(argv, stdout=subprocess.PIPE, check=True, timeout=30).stdout


@pytest.fixture
def target(tmp_path):
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


def _image(data, digest=None):
    return Image(len(data), digest or hashlib.sha256(data).hexdigest(), "root.tar.zst")


def _blocks(data, size=100):
    return (data[at : at + size] for at in range(0, len(data), size))


def test_it_is_unpacked_with_its_modes_and_every_percent_is_heard(packed, target):
    heard = []
    unpack.unpack(_blocks(packed), _image(packed), str(target), progress=heard.append)
    assert (target / "etc/hostname").read_text() == "general\n"
    assert (target / "etc/shadow").stat().st_mode & 0o777 == 0o640
    assert heard == sorted(set(heard))
    assert heard[-1] == 100


def test_what_is_excluded_stays_out(packed, target):
    unpack.unpack(_blocks(packed), _image(packed), str(target), exclude=("./usr/share/doc/*",))
    assert list((target / "usr/share/doc").iterdir()) == []


def test_another_image_than_the_announced_one(packed, target):
    with pytest.raises(AgentError, match=f"SHA-256 .*{'0' * 64} was announced"):
        unpack.unpack(_blocks(packed), _image(packed, "0" * 64), str(target))


@pytest.mark.parametrize("data", [b"this is no archive" * 1000, b""])
def test_what_cannot_be_unpacked(data, target):
    with pytest.raises(AgentError, match=r"cannot unpack root\.tar\.zst"):
        unpack.unpack(_blocks(data), _image(data or b"x"), str(target))


def test_an_image_that_ends_early(packed, target):
    with pytest.raises(AgentError, match="cannot unpack"):
        unpack.unpack(_blocks(packed[: len(packed) // 2]), _image(packed), str(target))


def test_no_space_is_called_so(packed, target, monkeypatch, tmp_path):
    full = tmp_path / "tar"
    full.write_text(
        "#!/bin/sh\nhead -c 100 >/dev/null\necho 'tar: ./x: Cannot write: No space left on device' >&2\nexit 2\n"
    )
    full.chmod(0o755)
    monkeypatch.setitem(unpack.ENVIRONMENT, "PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(AgentError, match=r"no space left: root\.tar\.zst does not fit"):
        unpack.unpack(_blocks(packed * 50), _image(packed * 50), str(target))
