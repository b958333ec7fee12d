"""The commands that set quotas, run by a shell with an xfs_quota that keeps limits as the real one prints them."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from rackwright.facts.quotas import DEFAULT, Limits, UserQuotas, differing
from tests.unit.roles.fake_host import commands, planned
from tests.unit.roles.sites import head
from tests.unit.roles.test_home import QUOTA, XFS, home_site, homes

XFS_QUOTA = r"""#!/usr/bin/env python3
import json, pathlib, sys
table = pathlib.Path(sys.argv[0]).with_name("limits")
rows = json.loads(table.read_text()) if table.exists() else {"0": [0, 0], "2009": [0, 0]}
(words,) = [one.split() for one in sys.argv[3:4]]
assert sys.argv[1:3] == ["-x", "-c"] and sys.argv[4:] == ["/srv"]
if words[0] == "limit":
    given = dict(word.split("=") for word in words if "=" in word)
    assert words[1] == "-u" and given["bsoft"] == given["isoft"] == "0" and given["bhard"].endswith("k")
    rows["0" if words[-1] == "-d" else words[-1]] = [int(given["bhard"][:-1]), int(given["ihard"])]
    table.write_text(json.dumps(rows))
elif words == ["state", "-u"]:
    print("User quota state on /srv (/dev/sdb)\n  Accounting: ON\n  Enforcement: ON")
elif words == "report -u -b -i -n -N".split():
    for uid, (kib, files) in sorted(rows.items()):
        print(f"#{uid:<10} 4 0 {kib:>10}     00 [--------] 1 0 {files:>10}     00 [--------]")
"""


@pytest.fixture
def shell(tmp_path):
    """Runs a command with that xfs_quota, and with /srv mounted."""
    for name, text in (("xfs_quota", XFS_QUOTA), ("mountpoint", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def run(command):
        return subprocess.run(
            ["sh", "-c", command],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout

    return run


def test_what_is_set_is_what_is_read_and_nothing_is_left_to_do(shell):
    made = home_site(homes(quota=QUOTA), makes=XFS)
    each, bob = Limits(104857600, 1000000), Limits(5242880, 1000000)
    users = {2001: each, 2002: bob}

    def left():
        return differing(UserQuotas().process(shell(UserQuotas().command("/srv")).splitlines()), each, users)

    assert set(left()) == {DEFAULT, 2001, 2002, 2009}
    (script,) = commands(planned(made, head(made)), "Set the quotas on home")
    shell(script)
    assert left() == {2009: (Limits(), each)}  # was there before, which the plan of an empty node cannot know
    shell("xfs_quota -x -c 'limit -u bsoft=0 bhard=104857600k isoft=0 ihard=1000000 2009' /srv")
    assert left() == {}


def test_nothing_is_set_where_nothing_is_mounted(shell, tmp_path):
    made = home_site(homes(quota=QUOTA), makes=XFS)
    (tmp_path / "mountpoint").write_text("#!/bin/sh\nexit 1\n")
    (script,) = commands(planned(made, head(made)), "Set the quotas on home")
    with pytest.raises(subprocess.CalledProcessError):
        shell(script)
    assert not Path(tmp_path / "limits").exists()
    assert shlex.split(script)[0] == "sh"
