"""Judges fio on one node. Pure."""

from __future__ import annotations

import errno
import os
from dataclasses import replace

from rackwright.boundary import Refused, last_line
from rackwright.burnin.finding import Finding
from rackwright.status import Status
from rackwright.storage.fio import BROKEN, WRONG_DATA, Kind, Unreadable, parse_fio
from rackwright.storage.judge import POSSIBLE_GBS, Judged
from rackwright.storage.plan import Sizes
from rackwright.storage.received import ALONE, FioAnswer, result_of
from rackwright.storage.report import NodeRates
from rackwright.workload.protocol import Output

SHORT_SECONDS = 1.0
"""A shorter measurement only shows caches and clock resolution."""


def judge_alone(node: str, output: Output, sizes: Sizes, seconds: int) -> Judged:
    """fio on one node."""
    try:
        answer = result_of(ALONE, output.text)
    except Refused as error:
        why = output.problem or f"unusable answer: {error}"
        return Judged(findings=(Finding(Status.UNKNOWN, f"{node} alone: {why} ({last_line(output.text)})"),))
    if answer.error is not None:
        return Judged(findings=(Finding(Status.UNKNOWN, f"{node} alone: {answer.error}"),))
    findings: list[Finding] = []
    rates, version = NodeRates(node), None
    for kind, given in (("write", answer.write), ("read", answer.read)):
        if given is None:
            findings += (
                [] if findings else [Finding(Status.UNKNOWN, f"{node} alone: fio did not reach {kind}")]
            )
            continue
        gbs, found, said = _fio(node, "write" if kind == "write" else "read", given, sizes, seconds)
        findings += found
        version = said or version
        rates = replace(rates, write_gbs=gbs) if kind == "write" else replace(rates, read_gbs=gbs)
    hung = any(given is not None and given.hung for given in (answer.write, answer.read))
    return Judged((rates,), findings=tuple(findings), version=version, hung=hung)


def _fio(
    node: str, kind: Kind, given: FioAnswer, sizes: Sizes, seconds: int
) -> tuple[float | None, list[Finding], str | None]:
    def against(status: Status, text: str) -> list[Finding]:
        return [Finding(status, f"{node} alone: {kind}: {text}")]

    if given.missing is not None:
        return None, against(Status.UNKNOWN, f"{given.missing}: the role storage_bench installs it"), None
    if given.hung:
        return (
            None,
            against(
                Status.UNKNOWN, f"did not end within {seconds} s: the filesystem hangs, or is far too slow"
            ),
            None,
        )
    try:
        run = parse_fio(given.output, kind)
    except Unreadable as error:
        return None, against(Status.UNKNOWN, f"{error} (exit status {given.exit_status})"), None
    if run.error == WRONG_DATA:
        return (
            None,
            against(Status.FAIL, f"data read is not the data written: {run.complaint}"),
            run.version,
        )
    if run.error or given.exit_status:
        status = Status.FAIL if run.error in BROKEN else Status.UNKNOWN
        named = f"fio ended with {errno.errorcode.get(run.error, run.error)} ({os.strerror(run.error)})"
        why = f"{named if run.error else f'fio exited {given.exit_status}'}: {run.complaint}"
        refused = run.error == errno.EINVAL and sizes.direct
        hint = "; a filesystem without O_DIRECT needs `bench: {direct: false}`" if refused else ""
        return None, against(status, f"{why}{hint}"), run.version
    wanted = sizes.size * sizes.jobs
    if run.bytes != wanted or run.gbs is None or run.gbs > POSSIBLE_GBS:
        said = f"fio moved {run.bytes} of {wanted} bytes in {run.seconds:g} s: no rate"
        return None, against(Status.UNKNOWN, said), run.version
    short = (
        against(Status.WARN, f"took {run.seconds:g} s: too short for a steady rate, raise `bench.size_mib`")
        if run.seconds < SHORT_SECONDS
        else []
    )
    return run.gbs, short, run.version
