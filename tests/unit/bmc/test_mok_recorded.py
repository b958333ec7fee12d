"""MokManager's screens as they were recorded: each file in mok_recorded says from what, and what was typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackwright.bmc.mok_manager import MokManager, Timing
from rackwright.secrets.secret import Secret
from tests.unit.bmc.test_mok_manager import Clock

RECORDED = sorted((Path(__file__).parent / "mok_recorded").glob("*.json"))


class Replay:
    """A console that shows what was recorded, and goes on once the same keys have come."""

    def __init__(self, steps, size):
        self.steps, self.size = [dict(step) for step in steps], size

    def read(self, seconds):
        if not self.steps or "shows" not in self.steps[0]:
            return b""
        text = self.steps[0]["shows"]
        self.steps[0]["shows"] = text[self.size :]
        if not self.steps[0]["shows"]:
            del self.steps[0]
        return text[: self.size].encode("latin-1")

    def write(self, keys):
        expected = self.steps[0]["typed"]
        assert expected.startswith(keys.decode()), f"{keys!r} was typed, {expected!r} was recorded"
        self.steps[0]["typed"] = expected[len(keys) :]
        if not self.steps[0]["typed"]:
            del self.steps[0]


@pytest.mark.parametrize("size", [7, 100_000])
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_same_keys_are_typed_again(path, size):
    recorded = json.loads(path.read_text())
    channel = Replay(recorded["steps"], size)
    manager = MokManager("gpu1", channel, Timing(step=10**6), clock=Clock(), sleep=lambda seconds: None)
    manager.enrol(bytes.fromhex(recorded["sha1"]), Secret("of the enrolment", recorded["password"]), 10**6)
    assert not [step for step in channel.steps if "typed" in step]
