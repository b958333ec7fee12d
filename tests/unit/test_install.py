"""What is installed is what is in the tree: wheel == wheel from the sdist == tree."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = {
    "roles": "rackwright/roles",
    "deploys": "rackwright/deploys",
    "templates": "rackwright/templates",
    "inventory": "rackwright/inventory",
}
LINKS = {f"rackwright/{room}" for room in ROOMS}

pytestmark = pytest.mark.install


def _build(source: Path, out: Path, kind: str) -> Path:
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", out, source],
        check=True,
        capture_output=True,
        timeout=300,
    )
    (built,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def _tracked() -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    return {name for name in listed if name and name not in LINKS}


def _expected_in_wheel() -> set[str]:
    names = set()
    for name in _tracked():
        room, _, rest = name.partition("/")
        if room == "rackwright":
            names.add(name)
        elif room in ROOMS:
            names.add(f"{ROOMS[room]}/{rest}")
    return names


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(wheel built from the tree, sdist, wheel built from the sdist)."""
    out = tmp_path_factory.mktemp("dist")
    wheel = _build(ROOT, out / "wheel", "wheel")
    sdist = _build(ROOT, out / "sdist", "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(out / "unpacked", filter="data")
    (unpacked,) = (out / "unpacked").iterdir()
    return wheel, sdist, _build(unpacked, out / "again", "wheel")


def test_the_wheel_holds_the_tracked_tree(built):
    assert set(_contents(built[0])) == _expected_in_wheel()


def test_the_wheel_from_the_sdist_is_the_same(built):
    assert _contents(built[0]) == _contents(built[2])


def test_the_sdist_holds_every_room(built):
    with tarfile.open(built[1]) as archive:
        rooms = {Path(name).parts[1] for name in archive.getnames() if len(Path(name).parts) > 1}
    assert {"rackwright", "roles", "deploys", "templates", "inventory", "tests", "docs"} <= rooms


def test_the_wheel_works_far_from_the_tree(built, tmp_path):
    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", site, built[0]],
        check=True,
        capture_output=True,
        timeout=240,
    )
    assert not (site / "roles").exists()  # one name in site-packages; the user's own roles/ stay theirs
    for arguments, wanted in (
        (["validate", str(ROOT / "inventory" / "lab.yaml")], 0),
        (["render", str(ROOT / "inventory" / "lab.yaml"), "--node", "head1"], 0),
        (["path", "deploys"], 0),
    ):
        done = subprocess.run(
            [
                sys.executable,
                "-I",
                "-c",
                (
                    f"import sys; sys.path.insert(0, {str(site)!r})\n"
                    "import runpy; runpy.run_module('rackwright', run_name='__main__')"
                ),
                *arguments,
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == wanted, done.stderr
    assert done.stdout.strip() == str((site / "rackwright" / "deploys").resolve())
