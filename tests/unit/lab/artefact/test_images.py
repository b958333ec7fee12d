"""Images: what is in them, under which name containerd imports them, and the same bytes each time."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from rackwright.lab.artefact import images
from rackwright.lab.artefact.tree import Builder

LDD = """\
/usr/bin/etcd:
\tlinux-vdso.so.1 (0x00007ffd)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f)
/usr/bin/etcdctl:
\tnot a dynamic executable
"""


def tree(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/program").write_text("program\n")
    (folder / "bin/program").chmod(0o755)
    return folder


def test_the_same_tree_gives_the_same_image(tmp_path: Path):
    made = [
        images.write_image(
            tmp_path / at, tree(tmp_path / at / "tree"), "pause", "3.2", {"Entrypoint": ["/pause"]}
        )
        for at in ("one", "two")
    ]
    assert made[0] == made[1]
    assert made[0].reference == "rack.lab/pause:3.2"
    archive = tmp_path / "one/images/pause.tar"
    assert made[0].file == "images/pause.tar"
    assert made[0].archive_sha256 == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert made[0].bytes == archive.stat().st_size


def test_containerd_finds_name_and_digest_in_the_archive(tmp_path: Path):
    made = images.write_image(tmp_path, tree(tmp_path / "tree"), "busybox", "1.37", {"Cmd": ["sh"]})
    with tarfile.open(tmp_path / made.file) as archive:

        def read(name: str) -> bytes:
            file = archive.extractfile(name)
            assert file is not None
            return file.read()

        (entry,) = json.loads(read("index.json"))["manifests"]
        manifest = json.loads(read(f"blobs/sha256/{made.digest.removeprefix('sha256:')}"))
        config = json.loads(read(f"blobs/sha256/{manifest['config']['digest'].removeprefix('sha256:')}"))
    assert entry["digest"] == made.digest
    assert entry["annotations"]["io.containerd.image.name"] == "rack.lab/busybox:1.37"
    assert config["config"]["Cmd"] == ["sh"]
    assert config["config"]["Env"][0].startswith("PATH=")


def test_the_document_lists_what_a_role_imports(tmp_path: Path):
    made = images.write_image(tmp_path, tree(tmp_path / "tree"), "pause", "3.2", {})
    (entry,) = json.loads(images.document([made]))
    assert sorted(entry) == ["archive_sha256", "bytes", "component", "digest", "file", "reference"]


class Answering(Builder):
    """A builder whose trees answer with a text."""

    def __init__(self, answer: str) -> None:
        super().__init__([])
        self.answer = answer

    def inside(self, tree: Path, command: str, timeout: float, shown: str | None = None) -> str:
        return self.answer


def test_a_program_comes_with_the_libraries_that_it_loads(tmp_path: Path):
    found = images._closure(Answering(LDD), tmp_path, ["/usr/bin/etcd", "/usr/bin/etcdctl"])
    assert found == [
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib64/ld-linux-x86-64.so.2",
        "/usr/bin/etcd",
        "/usr/bin/etcdctl",
    ]


@pytest.mark.parametrize(
    ("package", "version"),
    [("3.5.16-4+b1", "3.5.16"), ("1:1.37.0-6+b3", "1.37.0"), ("5.0.7", "5.0.7")],
)
def test_tags_are_upstream_s_versions(package: str, version: str):
    assert images._version(Answering(package), Path(), "x") == version
