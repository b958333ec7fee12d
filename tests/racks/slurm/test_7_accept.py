"""One command, one verdict, one report: accepted, rejected for a reason, and undecided."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rackwright.verify.selection import fold
from tests.racks.slurm.site import NODES, Site

pytestmark = pytest.mark.lab


def _accept(rack: Site, expect: int, verdict: str) -> tuple[dict[str, Any], str]:
    folder = rack.outputs / f"report-{verdict.lower()}"
    ran = rack.cli("accept", str(rack.file), "--yes", "--report", str(folder), expect=expect)
    assert f"\n{verdict}: {rack.name}, 3 nodes, " in ran.out
    assert ran.out.rstrip().endswith(f"report: {folder / 'report.html'}")
    report = json.loads((folder / "report.json").read_text())
    assert (report["verdict"], report["exit_code"]) == (verdict, expect)
    return report, (folder / "report.html").read_text()


def _with_floor(rack: Site, floor: float | None) -> None:
    def change(declared: dict[str, Any]) -> None:
        source = {} if floor is None else {"floor_busbw_gbs": floor, "floor_source": "a test"}
        declared["burnin"] = {"engine": "mpi", **source}

    rack.declare(change)


def test_accepted(rack: Site):
    report, page = _accept(rack, 0, "ACCEPTED")
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


def test_rejected_under_a_floor_no_machine_reaches(rack: Site):
    _with_floor(rack, 1e6)
    report, page = _accept(rack, 3, "REJECTED")
    assert report["line"].endswith("because of burn-in")
    assert "REJECTED" in page


def test_undecided_without_a_floor(rack: Site):
    _with_floor(rack, None)
    report, page = _accept(rack, 4, "UNDECIDED")
    assert report["line"].endswith("because of burn-in")
    assert "UNDECIDED" in page
    assert Path(rack.outputs / "report-undecided" / "report.json").stat().st_size > 10_000
