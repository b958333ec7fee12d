"""What people, CI servers and programs get to see."""

import io
import json
import re
from datetime import UTC, datetime
from xml.etree import ElementTree as Xml

import pytest
from rich.console import Console

from rackwright.claims.check import CheckResult
from rackwright.cli.verify_view import show_verify
from rackwright.errors import RackwrightError
from rackwright.status import Status
from rackwright.verify.junit import junit, write_junit
from rackwright.verify.report import VerifyReport


@pytest.fixture
def report():
    def result(role, check, node, status, evidence=""):
        return CheckResult(role, check, node, status, evidence, 0.5)

    return VerifyReport(
        cluster="t",
        file="t.yaml",
        sha256="0" * 64,
        nodes=("head", "w1", "w2"),
        results=(
            result("base", "hosts file is whole", "head", Status.PASS, "3 nodes"),
            result("base", "hosts file is whole", "w1", Status.PASS, "3 nodes"),
            result("slurm", "slurmd is running", "w1", Status.FAIL, "inactive <dead> & [red]gone[/red]"),
            result("slurm", "slurmd is running", "w2", Status.FAIL, "inactive <dead> & [red]gone[/red]"),
            result("slurm", "a job runs", "head", Status.UNKNOWN, "no answer\nfrom slurmctld"),
            result("slurm", "munge decodes", "head", Status.WARN, "slow"),
            result("time", "the clock is set", "w1", Status.OUT_OF_SCOPE, "a container shares its clock"),
        ),
        left_out=("slurm: sinfo shows every node",),
        started=datetime(2026, 11, 20, 12, 0, tzinfo=UTC),
        seconds=1.25,
    )


def shown(report, **options):
    out = io.StringIO()
    show_verify(report, Console(file=out, width=120), **options)
    return out.getvalue()


def test_verdict_line(report):
    assert report.verdict == ("verify: 3 nodes, 7 checks: 2 pass, 1 warn, 2 fail, 1 unknown, 1 out of scope")


def test_failures_first_passes_folded(report):
    text = shown(report)
    lines = text.splitlines()
    assert lines[0] == "slurm  0 of 4 pass"
    assert re.search(r"FAIL +w\[1-2\] +slurmd is running +inactive <dead> & \[red\]gone\[/red\]", text)
    assert text.index("FAIL") < text.index("UNKNOWN") < text.index("WARN") < text.index("base  2 of 2 pass")
    assert "hosts file is whole" not in text
    assert " a container shares its clock:\n   time (w1): the clock is set" in text
    assert "primary head is not selected: slurm: sinfo shows every node" in text
    assert lines[-1] == report.verdict


def test_verbose_shows_what_passes(report):
    assert re.search(r"PASS +head,w1 +hosts file is whole +3 nodes", shown(report, verbose=True))


def test_json_document(report):
    document = json.loads(json.dumps(report.to_json()))
    assert (document["kind"], document["version"], document["exit_code"]) == ("rackwright.verify", 1, 3)
    assert document["counts"] == {"PASS": 2, "WARN": 1, "FAIL": 2, "UNKNOWN": 1, "OUT OF SCOPE": 1}
    assert document["results"][2] == {
        "role": "slurm",
        "check": "slurmd is running",
        "node": "w1",
        "status": "FAIL",
        "evidence": "inactive <dead> & [red]gone[/red]",
        "seconds": 0.5,
    }


def test_junit_maps_every_status(report, tmp_path):
    write_junit(report, tmp_path / "sub" / "out.xml")
    root = Xml.parse(tmp_path / "sub" / "out.xml").getroot()
    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "7",
        "failures": "2",
        "errors": "1",
        "skipped": "1",
    }
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert cases["slurmd is running [w1]"].find("failure").get("message").startswith("inactive <dead> &")
    assert cases["a job runs [head]"].find("error").text == "no answer\nfrom slurmctld"
    assert cases["the clock is set [w1]"].find("skipped") is not None
    assert cases["munge decodes [head]"].find("system-out").text == "WARN: slow"
    assert len(cases["hosts file is whole [w1]"]) == 0
    assert junit(report).startswith("<?xml")


def test_junit_that_cannot_be_written(report, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RackwrightError, match="Cannot write the JUnit file"):
        write_junit(report, tmp_path / "file" / "out.xml")
