"""Where a job leaves lines in the journals of nodes: the nodes and times from accounting, and Slurm's words for it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from rackwright.boundary import printable
from rackwright.workload.protocol import JobTrace
from rackwright.workload.slurm.output import lines_of, parse_fields, parse_hostlist
from rackwright.workload.states import NoAnswer

JOB = re.compile(r"[0-9]{1,10}(?:[_+][0-9]{1,10})?")
"""A job, one task of an array (7_3) or one part of a heterogeneous job (7+1)."""
UNITS = ("slurmctld.service", "slurmd.service", "slurmstepd.scope")
"""Those that write about jobs, and in which jobs run; accounting writes to its own file alone."""
_COLUMNS = ("JobID", "JobIDRaw", "NodeList", "Submit", "Start", "End")
_TIMES = "SLURM_TIME_FORMAT=%s"
_NO_NODES = ("", "(null)", "None assigned")
_RUNS = frozenset(("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED"))
_WAITS = frozenset(
    ("PENDING", "CONFIGURING", "REQUEUED", "RESV_DEL_HOLD", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT")
)
"""What `scontrol show job` prints of their future are guesses."""
_Times = tuple[float | None, float | None, float | None]
"""Submitted, started, ended."""


def from_accounting(job: str) -> str:
    """Every part of a job, and each run of one that was requeued."""
    return f"env {_TIMES} sacct -XDnP -j {job} --format={','.join(_COLUMNS)}"


def from_controller(job: str) -> str:
    """The same, where there is no accounting: until some minutes after its end."""
    return f"env {_TIMES} scontrol show job {job} -o"


def accounted(job: str, output: str, known: Collection[str], servers: Sequence[str]) -> JobTrace | None:
    """What `from_accounting` prints; None where accounting does not know the job, NoAnswer when it is not that."""
    rows = []
    for line in lines_of(output, "sacct"):
        cells = line.split("|")
        if len(cells) != len(_COLUMNS):
            raise NoAnswer(f"`sacct` printed something else: {printable(line, 80)}")
        rows.append((cells[0], cells[1], cells[2], _times(cells[3:])))
    return _trace(job, rows, known, servers)


def shown(job: str, output: str, known: Collection[str], servers: Sequence[str]) -> JobTrace | None:
    """What `from_controller` prints; None where the controller does not know the job."""
    rows = []
    for values in parse_fields(output):
        if "JobId" in values:
            array = "{ArrayJobId}_{ArrayTaskId}".format(**values) if "ArrayTaskId" in values else ""
            submitted, started, ended = _times(
                [values.get(key, "") for key in ("SubmitTime", "StartTime", "EndTime")]
            )
            state = values.get("JobState", "")
            times = (
                submitted,
                None if state in _WAITS else started,
                None if state in _WAITS | _RUNS else ended,
            )
            rows.append((array or values["JobId"], values["JobId"], values.get("NodeList", ""), times))
    return _trace(job, rows, known, servers)


def _trace(
    job: str, rows: list[tuple[str, str, str, _Times]], known: Collection[str], servers: Sequence[str]
) -> JobTrace | None:
    if not rows:
        return None
    nodes: dict[str, None] = {}
    for _, _, hosts, _ in rows:
        try:
            nodes.update(dict.fromkeys([] if hosts in _NO_NODES else parse_hostlist(hosts)))
        except ValueError as error:
            raise NoAnswer(f"the nodes of job {job} cannot be read: {error}") from None
    submitted = [times[0] for *_, times in rows if times[0] is not None]
    started = [times[1] for *_, times in rows if times[1] is not None]
    if not submitted:
        raise NoAnswer(f"when job {job} was submitted cannot be read")
    ended = [times[2] for *_, times in rows]
    raw = sorted({row[1] for row in rows if JOB.fullmatch(row[1])})
    return JobTrace(
        id=job,
        nodes=tuple(name for name in known if name in nodes),
        strangers=tuple(printable(name, 100) for name in nodes if name not in known),
        servers=tuple(servers),
        submitted=min(submitted),
        started=min(started, default=None),
        ended=max(filter(None, ended)) if all(ended) else None,
        units=UNITS,
        cgroup=rf"/job_(?:{'|'.join(raw)})(?:/|$)",
        named=_named({job, *raw, *(row[0] for row in rows if JOB.fullmatch(row[0]))}, raw),
    )


def _named(ids: Collection[str], raw: Collection[str]) -> str:
    """A regular expression that finds Slurm's words for a job in a message.

    `JobId=2_1(3)`, `StepId=3.0`, `batch job 3 for UID`, `jobid [3]`, `[3.batch]`, `..._batch_request: 3`: as 24.11
    prints them. Not those of job 31, nor those of another task of the same array.
    """
    either = "|".join(re.escape(one) for one in sorted(ids, key=lambda one: (-len(one), one)))
    number = "|".join(raw)
    return (
        rf"(?i:\b(?:job|step)(?:_?ids?)?(?:=| \[?|: ))(?:{either})(?![0-9_+])"
        rf"|\((?:{number})\)|\[(?:{number})\.|_request: (?:{number})$"
    )


def _times(cells: Sequence[str]) -> _Times:
    found = [float(cell) if re.fullmatch("[1-9][0-9]{0,11}", cell) else None for cell in cells]
    return found[0], found[1], found[2]
