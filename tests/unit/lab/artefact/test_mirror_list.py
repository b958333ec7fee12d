"""The key of the packages that a rack serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.errors import LabError
from rackwright.lab.artefact.mirror_list import fingerprint
from rackwright.lab.sources import KEYRING


def test_a_fingerprint_is_read_without_the_users_gnupg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Racks that start at once would each make that folder, and all but the first of them fail."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(fingerprint(KEYRING)) == 40
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_a_key(tmp_path: Path):
    (tmp_path / "key.asc").write_text("no key")
    with pytest.raises(LabError, match=r"key\.asc is not a key"):
        fingerprint(tmp_path / "key.asc")
