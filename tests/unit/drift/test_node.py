"""What of an answer lasts: nothing that changes by itself is drift, everything else is."""

from __future__ import annotations

import re

import pytest

from rackwright.drift.node import label, lasting, seconds

STARTED = "StateChangeTimestamp=Fri 2026-11-20 19:50:11.123456 UTC"
LATER = "StateChangeTimestamp=Sat 2026-11-21 08:00:00.000001 UTC"
ACTIVE = ["LoadState=loaded", "ActiveState=active"]
UNIT = {"kind": "unit", "unit": "chrony.service", "watch": ["/etc/chrony"], "command": ""}
PATH = {"kind": "path", "path": "/etc/chrony", "digest_only": False, "command": ""}


def unit(stamp: str, newest: float, state: list[str] = ACTIVE) -> object:
    return lasting(UNIT, (0, [*state, stamp, f"newest {newest:.9f}0 /etc/chrony"], []))


def test_times_are_read_as_the_engine_reads_them():
    from rackwright.facts.units import _seconds

    for stamp in ("Fri 2026-11-20 19:50:11.123456 UTC", "n/a", ""):
        assert seconds(stamp) == _seconds(stamp)


def test_a_restart_is_no_drift_and_a_file_newer_than_it_is():
    before = seconds(STARTED.partition("=")[2]) - 10
    assert unit(STARTED, before) == unit(LATER, before)
    assert unit(STARTED, before) == unit(STARTED, before + 5)
    assert unit(STARTED, before) != unit(STARTED, before + 20)
    assert unit(STARTED, before) != unit(STARTED, before, ["LoadState=loaded", "ActiveState=inactive"])


def test_a_folder_s_size_is_no_drift_and_its_owner_is():
    def folder(line: str) -> object:
        return lasting(PATH, (0, [line], []))

    assert folder("directory|755|root|root|4096") == folder("directory|755|root|root|12288")
    assert folder("directory|755|root|root|4096") != folder("directory|755|ada|root|4096")
    assert folder("file|644|root|root|10") != folder("file|644|root|root|11")


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (PATH, "path /etc/chrony"),
        (UNIT, "unit chrony.service"),
        ({"kind": "packages", "packages": ["a", "b"], "command": ""}, "packages a b"),
        ({"kind": "sysctls", "keys": ["net.x"], "command": ""}, "sysctls net.x"),
        ({"kind": "user", "user": "ada", "command": ""}, "user ada"),
    ],
)
def test_what_a_question_is_about(question: dict[str, object], told: str):
    assert label(question) == told


def test_a_command_is_told_by_its_digest_alone():
    told = label({"kind": "shell", "command": "mysql -phunter2"})
    assert re.fullmatch(r"setting [0-9a-f]{12}", told)
