"""State is whole or absent, and a lock is its holder's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rackwright.errors import LabError
from rackwright.lab import names, state
from rackwright.lab.rack import Rack
from tests.unit.lab.specs import rack


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(names, "RUNTIME", tmp_path / "run")
    (tmp_path / "run" / "unit" / "nodes" / "node1").mkdir(parents=True)
    return tmp_path / "run"


def test_a_failed_write_leaves_the_old_file(runtime: Path, monkeypatch: pytest.MonkeyPatch):
    path = runtime / "file.json"
    state.write_json(path, {"a": 1})

    def no_space(handle: int, mode: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", no_space)
    with pytest.raises(OSError, match="No space left"):
        state.write_json(path, {"a": 2})
    assert state.read_json(path) == {"a": 1}
    assert [entry.name for entry in runtime.iterdir() if entry.is_file()] == ["file.json"]


def test_records_come_back(tmp_path: Path):
    record = state.NodeRecord({"name": "node1"}, "/images/x", "ssh-ed25519 AAAA", "0" * 32, {"cpu": True})
    state.save_node_record("unit", "node1", record)
    assert state.node_record("unit", "node1") == record
    assert state.recorded_nodes("unit") == ["node1"]
    state.save_spec(rack(tmp_path))
    assert state.saved_spec("unit") == rack(tmp_path)


def test_nothing_is_known_of_a_strange_rack():
    assert state.saved_spec("strange") is None
    assert state.node_record("strange", "node1") is None
    assert state.recorded_nodes("strange") == []


@pytest.mark.parametrize("content", ["{", '{"nodes": []}'])
def test_a_damaged_state_says_so_and_can_be_removed(runtime: Path, content: str):
    (runtime / "unit" / "rack.json").write_text(content)
    with pytest.raises(LabError) as caught:
        state.saved_spec("unit")
    assert "rack.json" in caught.value.message
    assert caught.value.hint == "rackwright lab down removes the rack"
    assert Rack.named("unit").name == "unit"


def test_a_second_holder_learns_the_first_ones_pid():
    code = "import sys; from pathlib import Path; from rackwright.lab import names, state\n"
    code += f"names.RUNTIME = Path({str(names.RUNTIME)!r})\n"
    code += "with state.lock('rack unit'): print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with (
            pytest.raises(LabError, match=rf"rack unit is busy: .*\(pid {holder.pid}\)"),
            state.lock("rack unit"),
        ):
            pass
        holder.kill()
    with state.lock("rack unit"):  # died with its holder
        pass
    assert not list(names.RUNTIME.glob(".*.lock"))


def test_a_waiter_gets_the_lock_of_the_one_before(runtime: Path):
    handle = os.open(runtime / ".x.lock", os.O_CREAT)  # an unlocked leftover
    os.close(handle)
    with state.lock("x", wait=1):
        assert (runtime / ".x.lock").read_text() == f"{os.getpid()}\n"
