"""What a node's own programs left behind: its last health check and, in pull mode, its last drift check."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from rackwright.boundary import Refused, last_line, validated
from rackwright.drift import paths
from rackwright.drift.states import State
from rackwright.health.guard import places
from rackwright.live.facts import Fact, Unknown
from rackwright.live.findings import Failure, LastDrift, LastHealth
from rackwright.live.judge import age_text
from rackwright.ssh import TIMED_OUT, RootShell
from rackwright.why.last import read_last

HEALTH_STALE_SECONDS = 1800
"""The workload manager starts the check every five minutes; the alert HealthCheckNotRunning has the same limit."""
_FILE_MAX_BYTES = 6 * 2**20
_SAMPLE = re.compile(r"^rackwright_drift_(\w+)\{[^}\n]*\} (\S{1,40})$", re.MULTILINE)
_Text = Annotated[str, Field(max_length=8192)]


class _Result(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)

    check: _Text
    status: Literal["PASS", "WARN", "FAIL", "UNKNOWN", "OUT OF SCOPE", "DISABLED"]
    action: _Text
    evidence: _Text


class _Verdict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)

    at: Annotated[float, Field(ge=0, lt=2**40)]
    results: Annotated[list[_Result], Field(max_length=10_000)]


_VERDICT = TypeAdapter(_Verdict)


def last_health(shell: RootShell, node: str, seconds: float) -> Fact[LastHealth]:
    """The last verdict of the node's health check; ConnectionFailed where the node is not reached."""
    read = read_file(shell, node, places.LAST, seconds)
    if isinstance(read, Unknown):
        return read
    now, _, text = read
    try:
        last = read_last(text)
        verdict = validated(_VERDICT, last.data)
    except Refused as error:
        return Unknown(f"what its health check left ({places.LAST}) is not used: {error}")
    age = now - verdict.at
    if age > HEALTH_STALE_SECONDS:
        return Unknown(f"its health check last ran {age_text(age)} ago")
    wrong = tuple(
        Failure(one.check, one.status, one.action, one.evidence)
        for one in verdict.results
        if one.status in ("FAIL", "UNKNOWN")
    )
    return LastHealth(verdict.at, age, len(verdict.results), wrong, last.memory.alert)


def pulled_drift(shell: RootShell, node: str, stale_seconds: float, seconds: float) -> Fact[LastDrift]:
    """What the node found about itself; ConnectionFailed where it is not reached."""
    read = read_file(shell, node, f"{paths.HOME}/{paths.NODE_METRICS}", seconds)
    if isinstance(read, Unknown):
        return read
    now, _, text = read
    try:
        samples = {name: float(value) for name, value in _SAMPLE.findall(text)}
        at = samples["last_check_timestamp_seconds"]
        drifted, unknown = samples["drifted"], samples["unknown"]
    except (ValueError, KeyError):
        return Unknown("its drift check left something that is not metrics of drift")
    if not 0 <= now - at <= stale_seconds:
        return Unknown(f"its scheduled drift check last ran {age_text(now - at)} ago")
    state = State.UNKNOWN if unknown else State.DRIFTED if drifted else State.IN_SYNC
    return LastDrift(state, at, now - at, scheduled=True)


def read_file(shell: RootShell, node: str, path: str, seconds: float) -> tuple[float, float, str] | Unknown:
    """(now, when it was written, its text); both times by the node's clock, so that they can be compared."""
    command = f"date +%s && stat -c %Y {path} && head -c {_FILE_MAX_BYTES} {path}"
    result = shell.run(node, command, timeout=seconds)
    if result.exit_status == TIMED_OUT:
        return Unknown(f"{node} did not answer within {seconds:g} s")
    if result.exit_status != 0:
        return Unknown(f"{path} on {node} cannot be read: {last_line(result.stdout, result.stderr)}")
    head = result.stdout.split("\n", 2)
    if len(head) != 3 or not all(re.fullmatch("[0-9]{1,12}", one) for one in head[:2]):
        return Unknown(f"{node} answered something else than the time and {path}")
    return float(head[0]), float(head[1]), head[2]


def read_file_here(path: Path) -> tuple[float, float, str] | Unknown:
    """The same of a file on this machine."""
    try:
        return time.time(), path.stat().st_mtime, path.read_text()
    except (OSError, ValueError) as error:
        return Unknown(f"{path} cannot be read: {error}")
