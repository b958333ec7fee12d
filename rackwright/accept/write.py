"""The two files of a report: report.json for programs, report.html for people."""

from __future__ import annotations

import json
from pathlib import Path

from rackwright.accept.chart import chart_of
from rackwright.accept.grouped import faces, out_of_scope, passes, troubles
from rackwright.accept.report import AcceptReport
from rackwright.accept.storage_chart import bars_of
from rackwright.burnin.report import bytes_text
from rackwright.clustermap.looks import STATUSES
from rackwright.clustermap.racks import rooms_of
from rackwright.drawing.model import Mark
from rackwright.drawing.page import Elevations
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.render import render


def default_folder(report: AcceptReport) -> Path:
    """`reports/<cluster>-<UTC time>` below the working directory."""
    return Path("reports") / f"{report.cluster}-{report.started:%Y%m%dT%H%M%SZ}"


def write_report(
    report: AcceptReport, cluster: Cluster, folder: Path, *, metrics: str | None = None
) -> tuple[Path, Path]:
    """Write report.json and report.html, return their paths; RackwrightError if that fails.

    metrics: address of the page with the cluster's dashboards, relative to the folder.
    """
    document, page = folder / "report.json", folder / "report.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        document.write_text(json.dumps(report.to_json(), indent=2) + "\n", encoding="utf-8")
        page.write_text(html(report, cluster, metrics), encoding="utf-8")
    except OSError as error:
        raise RackwrightError(f"Cannot write the report to {folder}: {error.strerror}.") from error
    return document, page


def html(report: AcceptReport, cluster: Cluster, metrics: str | None = None) -> str:
    """The page, whole: no script, no font, no image, no address outside its folder."""
    results = report.verified.results if report.verified is not None else ()
    wrong = troubles(results)
    groups = report.burnt_in.groups if report.burnt_in is not None else ()
    filesystems = report.benched.results if report.benched is not None else ()
    counts = report.verified.counts if report.verified is not None else {}
    return render(
        "report/report.html.j2",
        report=report,
        metrics=metrics,
        stages=report.stages,
        marks=[Mark(*STATUSES[status], count) for status, count in counts.items()],
        looks={status.value: shown.look.value for status, shown in STATUSES.items()},
        elevations=Elevations(rooms_of(cluster, faces(report, wrong))),
        troubles=wrong,
        beyond=out_of_scope(results),
        held=passes(results),
        groups=[(group, chart_of(group), fold(group.nodes)) for group in groups],
        filesystems=[(one, bars_of(one), fold(one.nodes)) for one in filesystems],
        bytes_text=bytes_text,
        fold=fold,
        started=report.started.strftime("%Y-%m-%d %H:%M:%S UTC"),
    )
