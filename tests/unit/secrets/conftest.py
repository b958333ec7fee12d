"""A user with an identity and a state folder of their own, and a place for a cluster file."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "config"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "site").mkdir()
    return tmp_path / "site" / "lab.yaml"
