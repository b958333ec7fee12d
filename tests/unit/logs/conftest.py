"""What several tests of logs need."""

from __future__ import annotations

import pytest

from tests.unit.logs.journals import Folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return Folder(tmp_path, monkeypatch)
