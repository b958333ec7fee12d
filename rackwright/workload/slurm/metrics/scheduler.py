"""The scheduler's own figures, of sdiag."""

from __future__ import annotations

import re
from typing import NamedTuple

from rackwright.boundary import printable
from rackwright.workload.states import NoAnswer

COMMAND = ("sdiag",)
_LINE = re.compile(r"\s*([A-Za-z][^:]{0,60}):\s*(.*)")
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
_EPOCH = re.compile(r"\(([0-9]{1,18})\)$", re.ASCII)
_MICROSECOND = 1e-6


class Scheduler(NamedTuple):
    """The state of slurmctld's scheduler; None if sdiag does not report it, e.g. before the first cycle."""

    main_cycle: float | None
    backfill_cycle: float | None
    backfill_last: float | None
    queue_length: float | None
    server_threads: float | None
    dbd_queue: float | None


def parse_scheduler(output: str) -> Scheduler:
    """What sdiag prints; NoAnswer where it is not that."""
    found: dict[tuple[str, str], str] = {}
    section = ""
    for line in output.split("\n"):
        if line and not line[:1].isspace() and not line.startswith("*"):
            section = _section(line)
        read = _LINE.match(line)
        if read is not None:
            found.setdefault((section, read[1]), read[2].strip())
    if ("", "Server thread count") not in found:
        raise NoAnswer(f"`sdiag` printed something else: {printable(output, 80)}")
    last = _EPOCH.search(found.get(("backfill", "Last cycle when"), ""))
    return Scheduler(
        main_cycle=_seconds(found.get(("main", "Last cycle"))),
        backfill_cycle=_seconds(found.get(("backfill", "Last cycle"))),
        backfill_last=float(last[1]) if last is not None and int(last[1]) > 0 else None,
        queue_length=_number(found.get(("main", "Last queue length"))),
        server_threads=_number(found.get(("", "Server thread count"))),
        dbd_queue=_number(found.get(("", "DBD Agent queue size"))),
    )


def _section(line: str) -> str:
    """Both schedulers have lines of the same names."""
    if line.startswith("Main schedule statistics"):
        return "main"
    if line.startswith("Backfilling stats"):
        return "backfill"
    return "" if line.startswith(("Server", "Agent", "DBD", "Job")) else "other"


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and _NUMBER.fullmatch(text) else None


def _seconds(text: str | None) -> float | None:
    number = _number(text)
    return None if number is None else number * _MICROSECOND
