"""One command, one verdict, one report; and a burn-in that fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rackwright.model.ranges import fold
from tests.racks.program import Ran
from tests.racks.site import Site
from tests.racks.slurm.conftest import NODES

pytestmark = pytest.mark.lab


def test_accepted(rack: Site, accepted: Ran):
    assert f"\nACCEPTED: {rack.name}, 3 nodes, " in accepted.out
    assert accepted.out.rstrip().endswith(f"report: {rack.outputs / 'report' / 'report.html'}")
    report = json.loads((rack.outputs / "report" / "report.json").read_text())
    page = (rack.outputs / "report" / "report.html").read_text()
    assert (report["verdict"], report["exit_code"]) == ("ACCEPTED", 0)
    assert {stage["name"]: stage["status"] for stage in report["stages"]} == dict.fromkeys(
        ("validate", "apply", "plan again", "verify", "burn-in"), "PASS"
    )
    assert report["nodes"] == list(NODES)
    assert set(report["verify"]["counts"]) <= {"PASS", "WARN", "OUT OF SCOPE", "FAIL", "UNKNOWN"}
    assert report["verify"]["counts"]["PASS"] > 100
    assert report["out_of_scope"]
    assert all(thing["reason"] for thing in report["out_of_scope"])
    assert report["versions"]
    sizes = [row["size"] for row in report["burnin"]["groups"][0]["measurements"][0]["rows"]]
    assert (sizes[0], sizes[-1]) == (8, 64 * 2**20)
    assert page.startswith("<!doctype html>")
    assert "ACCEPTED" in page
    assert fold(NODES) in page
    for outside in ("<script", "src=", "<link", "@import"):
        assert outside not in page


def _unreachable_floor(declared: dict[str, Any]) -> None:
    declared["burnin"] |= {"floor_busbw_gbs": 1e6, "max_bytes": 2**20, "iterations": 3}


def test_a_burn_in_below_its_floor_fails(rack: Site):
    """What `accept` makes of it, and a burn-in without a floor, are in tests/unit."""
    with rack.declaring(_unreachable_floor):
        ran = rack.cli("burnin", str(rack.file), expect=3)
    assert "FAIL" in ran.out
