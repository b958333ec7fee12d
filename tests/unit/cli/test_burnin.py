"""rackwright burnin: what is refused before anything runs, and the comparison with earlier runs."""

from __future__ import annotations

import json

import pytest

from rackwright.burnin.store import RESULTS
from rackwright.clusterfile.load import load_cluster
from tests.unit.burnin.test_history import EARLIER, document
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


def test_a_file_alone_is_a_run(rackwright, tmp_path):
    result = rackwright("burnin", "--json", tmp_path / "nothing.yaml")
    assert "The file does not exist" in result.err


@pytest.fixture
def kept(file, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def keep(*documents):
        folder = RESULTS.folder(load_cluster(file).name)
        folder.mkdir(parents=True, exist_ok=True)
        for number, one in enumerate(documents):
            (folder / f"2026110{number}T100000Z.json").write_text(json.dumps(one))
        return file

    return keep


def test_the_command_tells_a_regression(rackwright, kept):
    result = rackwright("burnin", "compare", kept(*EARLIER, document(9, 405.0)))
    assert result.status == 3
    assert "FAIL: all_reduce at 8589934592 B: 405 GB/s, 10 % below" in result.out
    assert "4 figures compared, 1 fell by more than noise" in result.out


def test_the_command_passes_and_prints_json(rackwright, kept):
    result = rackwright("burnin", "compare", kept(*EARLIER, document(9, 450.0)), "--json")
    assert result.status == 0
    [group] = json.loads(result.out)["groups"]
    assert (group["earlier_runs"], group["regressions"], group["series"][0]["middle"]) == (5, [], 450.0)


def test_the_command_says_when_it_cannot_tell(rackwright, kept):
    assert rackwright("burnin", "compare", kept(document(9, 405.0))).status == 4


def test_without_a_run_there_is_nothing_to_compare(rackwright, kept):
    result = rackwright("burnin", "compare", kept())
    assert result.status == 1
    assert "is stored on this host" in result.err
