"""Project quotas by xfs_quota, whose exit status says nothing."""

from __future__ import annotations

import pytest

from rackwright.node_folders import quota
from rackwright.node_folders.quota import NoQuota, is_enforced, set_limit, usage

REPORT = """\
#0                  4          0          0     00 [--------]
#1073741825     10240          0      10240     00 [-none-]
#1073741999        40          0    5242880     00 [--------]
"""
"""As report -p -N -n -b prints it (xfs_quota(8); several public programs read these columns, read 2026-11-26)."""
STATE = """\
Project quota state on /scratch (/dev/md127)
  Accounting: ON
  Enforcement: %s
  Inode: #131 (2 blocks, 2 extents)
"""


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """An xfs_quota that prints what it is given and notes its arguments."""

    def answers(**printed: str) -> None:
        path = tmp_path / "xfs_quota"
        cases = "".join(f"{word}*) cat <<'END'\n{text}END\n;;\n" for word, text in printed.items())
        path.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\ncase $3 in\n{cases}esac\n')
        path.chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return answers


def test_limits_are_read_back(tool, tmp_path):
    tool(report=REPORT)
    set_limit("/scratch", 1073741999, 5)
    set_limit("/scratch", 7, 0)
    assert (tmp_path / "asked").read_text() == (
        "-x -c limit -p bhard=5g 1073741999 /scratch\n-x -c report -p -N -n -b /scratch\n"
        "-x -c limit -p bhard=0g 7 /scratch\n-x -c report -p -N -n -b /scratch\n"
    )
    with pytest.raises(NoQuota, match=r"could not set a limit of 6 GiB on /scratch: are project quotas on"):
        set_limit("/scratch", 1073741999, 6)


def test_usage(tool):
    tool(report=REPORT)
    assert usage("/scratch")[1073741825] == (10240, 10240)
    tool(report="")
    assert usage("/scratch") == {}


@pytest.mark.parametrize(("word", "enforced"), [("ON", True), ("OFF", False)])
def test_enforcement(tool, word, enforced):
    tool(state=STATE % word)
    assert is_enforced("/scratch") is enforced


def test_a_complaint_and_a_missing_tool_are_no_answer(tool, tmp_path, monkeypatch):
    path = tmp_path / "xfs_quota"
    path.write_text("#!/bin/sh\necho 'xfs_quota: cannot setup path for mount /scratch: No such device' >&2\n")
    path.chmod(0o755)
    with pytest.raises(NoQuota, match="exited 0 with the output: xfs_quota: cannot setup path"):
        is_enforced("/scratch")
    path.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoQuota, match="No such file"):
        usage("/scratch")


def test_a_filesystem_without_projects_is_said(tmp_path):
    with (
        open("/proc/self/status", encoding="ascii") as other,
        pytest.raises(NoQuota, match="cannot assign a project"),
    ):
        quota.set_project(other.fileno(), 5)
