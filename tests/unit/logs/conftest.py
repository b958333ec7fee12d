"""What several tests of logs need."""

from __future__ import annotations

import pytest

from rackwright.logs import keeper
from rackwright.logs.keeper import Keeper
from tests.unit.logs.journals import T0, Folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return Folder(tmp_path, monkeypatch)


@pytest.fixture
def run(folder, tmp_path):
    """A pass of the keeper at T0 + `now`."""
    (tmp_path / "root").mkdir()
    for name in (keeper.STATE, str(folder.path), str(folder.audit)):
        (tmp_path / "root" / name.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
    state = tmp_path / "state"
    state.mkdir()

    def pass_(now=0.0, **changes):
        settings = {
            **folder.settings,
            "days": 14,
            "audit_days": 90,
            "max_bytes": 1 << 40,
            "keep_free_bytes": 0,
            **changes,
        }
        made = Keeper(settings, T0 + now)
        made.cursors_path = str(state / "cursors.json")
        made.run()
        return made

    return pass_
