"""All running jobs by node, from one squeue. Users name their jobs, so a line counts only with the mark at its beginning."""

from __future__ import annotations

import re

from rackwright.boundary import printable
from rackwright.model.ranges import RangeMistake, expand
from rackwright.workload.protocol import Job

_ROWS_MAX = 20_000
_JOB = re.compile(r"[0-9][0-9_+\[\]%,.-]{0,99}")


def squeue(mark: str) -> str:
    """The command; running, completing and suspended jobs, with the nodes of each."""
    return f"squeue --noheader --states=R,CG,S --format='{mark}|%i|%u|%N|%j'"


def parse_queue(text: str, mark: str) -> dict[str, tuple[Job, ...]]:
    """Jobs by node; a row that is not as squeue prints it is left out."""
    found: dict[str, list[Job]] = {}
    for line in text.split("\n")[:_ROWS_MAX]:
        cells = line.split("|", 4)
        if len(cells) != 5 or cells[0] != mark or not _JOB.fullmatch(cells[1]):
            continue
        job = Job(cells[1], printable(cells[2], 120), printable(cells[4], 120))
        try:
            nodes = expand(cells[3]) if cells[3] else ()
        except RangeMistake:
            continue
        for node in nodes:
            found.setdefault(node, []).append(job)
    return {node: tuple(jobs) for node, jobs in found.items()}
