"""What the tests of installations share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path, monkeypatch):
    """Journals, CA and media of a test are its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
