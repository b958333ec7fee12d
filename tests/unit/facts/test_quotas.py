"""Limits of users on XFS: what xfs_quota prints, and what differs from the declaration."""

from __future__ import annotations

import subprocess

import pytest

from rackwright.facts.quotas import DEFAULT, Limits, Quotas, UserQuotas, differing

STATE = """\
User quota state on /srv (/dev/md127)
  Accounting: ON
  Enforcement: ON
  Inode: #131 (2 blocks, 2 extents)
Blocks grace time: [7 days]
Inodes grace time: [7 days]
Realtime Blocks grace time: [7 days]
"""
ROWS = """\
#0                   0          0  104857600     00 [--------]          3          0    1000000     00 [--------]
#2001            81920      51200      81920     00  [6 days]          1          6          8     00 [--------]
#2002                0          0  104857600     00 [--------]          0          0    1000000     00 [--------]
"""
END = "rackwright: end\n"
EACH = Limits(104857600, 1000000)


def read(text):
    return UserQuotas().process(text.splitlines())


def test_what_xfs_quota_prints():
    assert read(STATE + ROWS + END) == Quotas(
        True, {DEFAULT: EACH, 2001: Limits(81920, 8, 51200, 6), 2002: EACH}
    )
    assert read(STATE.replace("Enforcement: ON", "Enforcement: OFF") + END) == Quotas(False, {})


@pytest.mark.parametrize(
    "text", ["", STATE + ROWS, STATE.replace("Accounting: ON", "Accounting: OFF") + END, END]
)
def test_what_is_not_there(text):
    assert read(text) is None


def test_a_row_that_cannot_be_read_is_not_passed_over():
    with pytest.raises(ValueError, match="#2001 many"):
        read(STATE + "#2001 many\n" + END)


def test_the_command_runs_where_nothing_is_mounted_and_no_tool_is_there(tmp_path):
    done = subprocess.run(
        ["sh", "-c", UserQuotas().command(str(tmp_path))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_everyone_has_the_limit_and_some_have_their_own():
    there = Quotas(True, {DEFAULT: EACH, 2001: EACH, 2002: Limits(), 2003: Limits(5, 5)})
    assert differing(there, EACH, {2001: EACH}) == {2002: (Limits(), EACH), 2003: (Limits(5, 5), EACH)}
    assert differing(there, EACH, {2002: EACH, 2003: Limits(5, 5), 2004: EACH}) == {
        2002: (Limits(), EACH),
        2004: (Limits(), EACH),
    }
    assert differing(None, EACH, {}) == {DEFAULT: (Limits(), EACH)}
    assert str(Limits()) == "unlimited"
    assert str(Limits(4, 5, 1)) == "4 KiB, 5 files, soft limits"
