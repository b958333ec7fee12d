"""rackwright logs: lines of all nodes, from wherever the cluster file keeps them."""

from __future__ import annotations

import re
import time
from typing import Annotated

import typer

from rackwright.boundary import printable
from rackwright.cli.arguments import AsJson, ClusterFile
from rackwright.cli.json_output import print_document
from rackwright.cli.logs_follow import Follower
from rackwright.cli.logs_view import show_doubts, show_lines
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import ExitCode, RackwrightError
from rackwright.logs.ask import LogQuery, read_logs
from rackwright.logs.report import LINES_MAX
from rackwright.logs.times import moment
from rackwright.ssh import Pool

PRIORITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
"""syslog(3), from 0 on."""
LINES = 1000
_UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._:\\-]{0,199}")
_SUFFIX = re.compile(r"\.(service|socket|timer|mount|automount|target|path|slice|scope|swap)$")
Nodes = Annotated[str | None, typer.Option(metavar="NODESET", help="Only of these nodes, e.g. gpu[001-016].")]
JobId = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        help="Only of this job: its processes, the workload manager's lines about it, and the kernel's "
        "lines on its nodes while it ran.",
    ),
]
UnitOption = Annotated[
    str | None, typer.Option(metavar="UNIT", help="Only of this systemd unit, e.g. slurmd.")
]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="E.g. 2h (ago) or 2026-11-27 10:30 (UTC); by default 24h, or the job's."
    ),
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="By default now, or the job's end.")]
Grep = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Only lines with this text, in lower or upper case.")
]
Priority = Annotated[
    str | None, typer.Option(metavar="LEVEL", help="At least as important as this, e.g. err or warning.")
]
Audit = Annotated[
    bool,
    typer.Option("--audit", help="Only logins, sudo and runs of rackwright; these are kept longest."),
]
Lines = Annotated[int, typer.Option(min=1, max=LINES_MAX, help="Number of lines, the newest first.")]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Go on with new lines until Ctrl-C, or the end of the job.")
]


def logs_command(
    file: ClusterFile,
    node: Nodes = None,
    job: JobId = None,
    unit: UnitOption = None,
    since: Since = None,
    until: Until = None,
    grep: Grep = None,
    priority: Priority = None,
    audit: Audit = False,
    lines: Lines = LINES,
    follow: Follow = False,
    as_json: AsJson = False,
) -> None:
    """Print lines of the nodes' journals, oldest first. Changes nothing.

    They are read from the store that the cluster file declares, so also those of nodes that are down. XIDs, SXids,
    AER and other complaints of the kernel are shown with their fields. Times are in UTC.
    Exit status 0: all that was asked for is there, 4: lines of a node are missing or late, 1: nothing could be read.
    """
    if follow and (until is not None or as_json):
        raise RackwrightError(f"--follow has no end: leave out {'--json' if as_json else '--until'}.")
    cluster, now = load_cluster(file), time.time()
    question = LogQuery(
        since=None if since is None else moment(since, now),
        until=None if until is None else moment(until, now),
        nodes=node,
        job=job,
        unit=None if unit is None else _unit(unit),
        grep=grep,
        priority=None if priority is None else _priority(priority),
        audit=audit,
        lines=lines,
    )
    with Pool(cluster) as pool:
        with Console(stderr=True).status("reading logs ..."):
            report = read_logs(cluster, question, pool)
        if as_json:
            print_document("logs", report.to_json())
        else:
            show_lines(report.lines)
            show_doubts(report, question.lines)
        if follow:
            follower = Follower(cluster, question, report, pool)
            follower.run()
            report = follower.report
    raise typer.Exit(int(ExitCode.UNKNOWN if report.unknown else ExitCode.CLEAN))


def _unit(text: str) -> str:
    if not _UNIT.fullmatch(text):
        raise RackwrightError(
            f"{printable(text, 60)} is not the name of a unit.", hint="e.g. slurmd or ssh.service"
        )
    return text if _SUFFIX.search(text) else f"{text}.service"


def _priority(text: str) -> int:
    if text in PRIORITIES:
        return PRIORITIES.index(text)
    if text.isascii() and text.isdigit() and int(text) < len(PRIORITIES):
        return int(text)
    raise RackwrightError(
        f"{printable(text, 60)} is not a priority.", hint=f"one of: {', '.join(PRIORITIES)}"
    )
