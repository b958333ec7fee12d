"""rackwright burnin: what is refused before anything runs."""

from __future__ import annotations

import pytest

from tests.unit.clusterfile.base_file import BASE


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "good.yaml"
    path.write_text(BASE)
    return path


def test_hours_are_for_a_soak_alone(rackwright, file):
    result = rackwright("burnin", file, "--hours", 2)
    assert result.err.splitlines()[0] == "error: --hours is for a soak alone."
    assert "--profile soak" in result.err


def test_profiles_are_named(rackwright, file):
    result = rackwright("burnin", file, "--profile", "long")
    assert result.status == 64
    assert "quick" in result.err
