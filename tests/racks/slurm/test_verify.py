"""Verify passes on what is right, and reports UNKNOWN for what it cannot see. More of it: tests/racks/plain."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.racks.site import Site
from tests.racks.slurm.conftest import NODES
from tests.racks.verified import named, results

pytestmark = pytest.mark.lab


def test_everything_declared_is_so(rack: Site):
    junit = rack.outputs / "verify.xml"
    found = results(rack, 0, "--junit", str(junit))
    assert set(found) == {"PASS", "OUT OF SCOPE"}
    assert len(found["PASS"]) > 100
    assert {result["node"] for result in found["PASS"]} == set(NODES)
    assert all(result["evidence"] for results in found.values() for result in results)
    cases = ElementTree.parse(junit).getroot().iter("testcase")
    assert sum(1 for _ in cases) == sum(map(len, found.values()))


def test_a_tool_that_cannot_be_run_is_unknown_and_no_pass(rack: Site):
    rack.on("head1", "chmod 000 /usr/bin/sacctmgr")
    try:
        found = results(rack, 4, "--role", "slurm")
    finally:
        rack.on("head1", "chmod 755 /usr/bin/sacctmgr")
    assert "FAIL" not in found
    asked = {
        "accounts, users and QOS are as declared",
        "purged accounting records are archived",
        "slurmdbd answers this controller",
    }
    assert named(found["UNKNOWN"]) == {("head1", "slurm", check) for check in asked}
    for unknown in found["UNKNOWN"]:
        assert "sacctmgr" in unknown["evidence"]
        assert "Permission denied" in unknown["evidence"]
