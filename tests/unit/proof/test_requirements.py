"""requirements-dev.txt: one version of everything, and nothing but files with a digest that was there when it was locked."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOCKED = (ROOT / "requirements-dev.txt").read_text()
_ENTRY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.+!]*( --hash=sha256:[0-9a-f]{64})+")


def entries():
    return [
        line.strip()
        for line in re.sub(r" *\\\n *", " ", LOCKED).splitlines()
        if line.strip()[:1] not in ("", "#")
    ]


def test_every_package_has_one_version_and_digests():
    assert len(entries()) > 50
    assert [entry for entry in entries() if not _ENTRY.fullmatch(entry)] == []


def test_no_index_is_named():
    assert not re.search(r"https?:|--(extra-)?index-url|--find-links|--trusted-host", LOCKED)


def test_the_virtual_environment_is_made_of_nothing_else():
    text = (ROOT / ".ci" / "bootstrap").read_text()
    assert [
        line
        for line in text.splitlines()
        if "requirements-dev.txt" in line and "--require-hashes" not in line
    ] == []
    assert "--require-hashes -r requirements-dev.txt" in text


def _wheel(folder: Path, content: str) -> Path:
    path = folder / "locked_thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("locked_thing.py", content)
        archive.writestr(
            "locked_thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: locked-thing\nVersion: 1.0\n"
        )
        archive.writestr(
            "locked_thing-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("locked_thing-1.0.dist-info/RECORD", "")
    return path


@pytest.mark.slow
def test_another_file_of_the_same_version_is_refused(tmp_path):
    """What an index, a mirror or a proxy could hand out."""
    digest = hashlib.sha256(_wheel(tmp_path, "good = True\n").read_bytes()).hexdigest()
    (tmp_path / "requirements.txt").write_text(f"locked-thing==1.0 --hash=sha256:{digest}\n")
    command = [
        *(
            sys.executable,
            "-m",
            "pip",
            "install",
            "--isolated",
            "--no-index",
            "--dry-run",
            "--disable-pip-version-check",
        ),
        *("--find-links", str(tmp_path), "--require-hashes", "-r", str(tmp_path / "requirements.txt")),
    ]
    good = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert good.returncode == 0, good.stderr
    _wheel(tmp_path, "good = False\n")
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert refused.returncode != 0
    assert "DO NOT MATCH THE HASHES" in refused.stderr
