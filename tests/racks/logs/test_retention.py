"""What is removed, and what is kept longer. Last of all: the keeper's clock is moved on by months."""

from __future__ import annotations

import json

import pytest

from rackwright.logs.sources import address_of
from rackwright.roles.logs.paths import AUDIT, JOURNALS, KEEPER, KEEPER_TIMER, KEEPER_UNIT, SOURCES
from rackwright.roles.logs.texts import PYTHON
from tests.racks.logs.lines import HEAD, arrives, ask, found, is_as_declared, on_head, reach, until, write
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_MAX_USE = 64 << 20
_LATER = f"""\
{PYTHON} -IS - <<'END'
import runpy, sys, time
now = time.time
time.time = lambda: now() + {{days}} * 86400
sys.argv = ["logs-keeper"]
runpy.run_path("{KEEPER}", run_name="__main__")
END
"""


def _keep(site: Site) -> None:
    site.on(HEAD, f"systemctl start {KEEPER_UNIT}")


def _used(site: Site) -> int:
    return int(site.on(HEAD, f"du -s --block-size=1 {JOURNALS}").split()[0])


def _flood(site: Site, node: str) -> None:
    """Until the keeper has to act; not so much that the receiver does, which removes the oldest files of all."""
    for part in range(1, 30):
        large = "head -c 3000000 /dev/urandom | base64 -w 8000 | systemd-cat -t lo-flood"
        site.on(node, f"{large}; echo {part} | systemd-cat -t lo-part")
        reach(site, node, "lo-part", part)
        if _used(site) > _MAX_USE:
            return
    raise AssertionError(f"{_used(site)} bytes are used")


def _closed(site: Site, node: str) -> list[str]:
    """Names of a node's files that are not written to any more."""
    address = address_of(json.loads(site.on(HEAD, f"cat {SOURCES}"))[node])
    return site.on(HEAD, f"cd {JOURNALS}; ls -d remote-{address}@* 2>/dev/null || :").splitlines()


def test_a_flood_costs_the_node_that_wrote_it_its_own_lines(site: Site):
    """More than `max_use`: the keeper removes closed files of that node, none of others, and the audit trail has all."""
    write(site, "worker1", "lo-quiet", 1, 300)
    write(site, "worker2", "lo-early", 1, 300)
    site.on("worker2", "sudo -u bob true lo-kept")
    arrives(site, "lo-quiet", {"worker1": 300})
    arrives(site, "lo-early", {"worker2": 300})
    until(lambda: bool(found(site, "--audit", "--grep", "lo-kept")), "line of sudo")
    _keep(site)
    quiet = _closed(site, "worker1")
    _flood(site, "worker2")
    _keep(site)
    assert _used(site) <= _MAX_USE
    assert set(_closed(site, "worker1")) >= set(quiet)
    assert len(on_head(site, "worker1", "lo-quiet")) >= 300
    assert on_head(site, "worker2", "lo-early") == []
    assert found(site, "--node", "worker2", "--grep", "lo-kept") == []
    kept = [line for line in ask(site, "--audit", "--grep", "lo-kept")["lines"] if line["name"] == "sudo"]
    assert [(line["node"], line["trusted"]) for line in kept] == [("worker2", True)]


def test_lines_and_audit_trail_are_for_root_alone(site: Site):
    files = site.on(HEAD, f"find {JOURNALS} {AUDIT} -type f").split()
    assert {path.rpartition("/")[0] for path in files} == {JOURNALS, AUDIT}
    for user, folder in (("ada", JOURNALS), ("ada", AUDIT), ("systemd-journal-remote", AUDIT)):
        for command in (f"ls {folder}", *(f"head -c 1 {path}" for path in files if path.startswith(folder))):
            said = site.on(HEAD, f"cd /; runuser -u {user} -- {command} 2>&1 || :")
            assert "Permission denied" in said, (user, command)


def test_old_lines_go_and_the_audit_trail_stays_for_its_own_days(site: Site):
    """The keeper's own program, 15 and then 95 days later. Open files are never removed."""
    site.on(HEAD, f"systemctl stop {KEEPER_TIMER}")
    try:
        assert [node for node in site.nodes if _closed(site, node)] != []
        site.on(HEAD, _LATER.format(days=15))
        assert [_closed(site, node) for node in site.nodes] == [[], [], []]
        assert site.on(HEAD, f"ls {JOURNALS}").split() == [
            f"remote-127.1.0.{number}.journal" for number in (1, 2, 3)
        ]
        kept = found(site, "--audit", "--grep", "lo-kept")
        assert ("worker2", True) in {(node, "COMMAND" in message) for node, message in kept}
        site.on(HEAD, _LATER.format(days=95))
        assert found(site, "--audit", "--grep", "lo-kept") == []
    finally:
        site.on(HEAD, f"systemctl start {KEEPER_TIMER}")


def test_everything_is_still_as_declared(site: Site):
    _keep(site)
    is_as_declared(site)
    assert ask(site)["unknown"] == []
