"""One command, one verdict, one report; and a burn-in that fails, or cannot tell."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rackwright.verify.selection import fold
from tests.racks.site import Ran, Site
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


def _with_floor(floor: float | None) -> Callable[[dict[str, Any]], None]:
    def change(declared: dict[str, Any]) -> None:
        source = {} if floor is None else {"floor_busbw_gbs": floor, "floor_source": "a test"}
        declared["burnin"] = {"engine": "mpi", **source}

    return change


@pytest.mark.parametrize(
    ("floor", "status", "verdict"),
    [(1e6, 3, "FAIL"), (None, 4, "UNKNOWN")],
    ids=["a floor no machine reaches", "no floor"],
)
def test_a_burn_in_that_proves_nothing_is_no_pass(rack: Site, floor: float | None, status: int, verdict: str):
    """What `accept` makes of it is in tests/unit/accept."""
    with rack.declaring(_with_floor(floor)):
        ran = rack.cli("burnin", str(rack.file), expect=status)
    assert verdict in ran.out
