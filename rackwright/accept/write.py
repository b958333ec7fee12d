"""The two files of a report: report.json for programs, report.html for people."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rackwright.accept.chart import chart_of
from rackwright.accept.report import AcceptReport
from rackwright.accept.storage_chart import bars_of
from rackwright.burnin.report import bytes_text
from rackwright.claims.check import CheckResult
from rackwright.errors import RackwrightError
from rackwright.model.ranges import fold
from rackwright.render import render
from rackwright.status import Status
from rackwright.verify.report import SEVERITY, folded


def default_folder(report: AcceptReport) -> Path:
    """`reports/<cluster>-<UTC time>` below the working directory."""
    return Path("reports") / f"{report.cluster}-{report.started:%Y%m%dT%H%M%SZ}"


def write_report(report: AcceptReport, folder: Path, *, metrics: str | None = None) -> tuple[Path, Path]:
    """Write report.json and report.html, return their paths; RackwrightError if that fails.

    metrics: address of the page with the cluster's dashboards, relative to the folder.
    """
    document, page = folder / "report.json", folder / "report.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        document.write_text(json.dumps(report.to_json(), indent=2) + "\n", encoding="utf-8")
        page.write_text(html(report, metrics), encoding="utf-8")
    except OSError as error:
        raise RackwrightError(f"Cannot write the report to {folder}: {error.strerror}.") from error
    return document, page


@dataclass(frozen=True)
class Line:
    """Equal results of several nodes."""

    role: str
    check: str
    nodes: str
    status: Status
    evidence: str


def html(report: AcceptReport, metrics: str | None = None) -> str:
    """The page, whole: no script, no font, no image, no address outside its folder."""
    results = report.verified.results if report.verified is not None else ()
    troubled = [Line(r.role, r.check, nodes, r.status, r.evidence) for r, nodes in folded(results)]
    groups = report.burnt_in.groups if report.burnt_in is not None else ()
    filesystems = report.benched.results if report.benched is not None else ()
    return render(
        "report/report.html.j2",
        report=report,
        metrics=metrics,
        stages=report.stages,
        counts=[(status, count) for status, count in report.verified.counts.items()]
        if report.verified
        else [],
        troubles=sorted(
            (line for line in troubled if line.status in (Status.FAIL, Status.UNKNOWN, Status.WARN)),
            key=lambda line: SEVERITY.index(line.status),
        ),
        out_of_scope=[line for line in troubled if line.status is Status.OUT_OF_SCOPE],
        passes=_passes([result for result in results if result.status is Status.PASS]),
        groups=[(group, chart_of(group), fold(group.nodes)) for group in groups],
        filesystems=[(one, bars_of(one), fold(one.nodes)) for one in filesystems],
        bytes_text=bytes_text,
        fold=fold,
        started=report.started.strftime("%Y-%m-%d %H:%M:%S UTC"),
    )


def _passes(results: Sequence[CheckResult]) -> list[Line]:
    """One line for each check; evidence that differs between nodes stays in report.json."""
    checks: dict[tuple[str, str], list[CheckResult]] = defaultdict(list)
    for result in results:
        checks[result.role, result.check].append(result)
    lines = []
    for (role, check), same in checks.items():
        evidences = {result.evidence for result in same}
        evidence = evidences.pop() if len(evidences) == 1 else "differs between nodes, see report.json"
        lines.append(Line(role, check, fold(result.node for result in same), Status.PASS, evidence))
    return lines
