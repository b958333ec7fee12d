"""Runs of all operators, as recorded on the heads of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter

from rackwright.boundary import Refused, last_line, printable, read_json_as
from rackwright.engine.head_lock import JOURNALS, LOCKS, SILENT_SECONDS
from rackwright.engine.journal import runs
from rackwright.engine.journal_lines import Run, gather
from rackwright.engine.lock_holder import RUN_NAME
from rackwright.errors import ConnectionFailed, RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.types import NodeRole
from rackwright.node_programs import RUNS_READER, python_command

_SECONDS = 60


class _Answer(BaseModel):
    """Output of the reader on a head."""

    holder: dict[str, Any] | None
    journals: dict[str, list[str]]


_ANSWER = TypeAdapter(_Answer)


@dataclass(frozen=True)
class Known:
    """Runs of a cluster, oldest first: this machine's own and those of others."""

    runs: list[Run]
    problem: str | None = None
    """Why no head could be asked: then other operators' runs are missing."""


def all_runs(cluster: Cluster) -> Known:
    """This user's runs on this machine, and the others that a head knows."""
    mine = {run.run: run for run in runs(cluster.name)}
    try:
        others = _ask(cluster, "")
    except RackwrightError as error:
        return Known(list(mine.values()), error.message)
    return Known([run for _, run in sorted({**others, **mine}.items())])


def run_of_others(cluster: Cluster, run: str) -> Run:
    """A run with all its operations, from a head; RackwrightError if it does not exist, or no head answers."""
    if not RUN_NAME.fullmatch(run):
        raise RackwrightError(
            f"{printable(run, 60)} is not a valid run name.", hint="e.g. 20261123T074215Z-0a1b2c"
        )
    found = _ask(cluster, run).get(run)
    if found is None or not found.begin:
        raise RackwrightError(
            f"Run {run} of cluster {cluster.name} was not found here or on its heads.",
            hint=f"see: rackwright runs {cluster.path}",
        )
    return found


def _ask(cluster: Cluster, run: str) -> dict[str, Run]:
    """From the first head that answers, the primary one first, in the order in which the lock is taken."""
    from rackwright.ssh import Pool  # loads paramiko, which many runs do not need

    heads = sorted(cluster.holding(NodeRole.HEAD), key=lambda node: not node.primary)
    why = []
    with Pool(cluster) as pool:
        for node in heads:
            command, program = python_command(RUNS_READER, LOCKS, JOURNALS, cluster.name, run)
            try:
                result = pool.run(node.name, command, stdin=program, timeout=_SECONDS)
            except ConnectionFailed as error:
                why.append(error.message.rstrip("."))
                continue
            if result.exit_status == 0:
                try:
                    return _runs_of(cluster, read_json_as(_ANSWER, result.stdout))
                except Refused as error:
                    why.append(f"{node.name}: invalid answer: {error}")
                    continue
            why.append(f"{node.name}: {last_line(result.stdout, result.stderr)}")
    raise RackwrightError(f"Cannot read the runs of other operators: {'; '.join(why)}.")


def _runs_of(cluster: Cluster, answer: _Answer) -> dict[str, Run]:
    holder = answer.holder or {}
    idle = holder.get("idle_seconds")
    holds = not holder.get("ended") and isinstance(idle, (int, float)) and idle < SILENT_SECONDS
    running = holder.get("run") if holds else None
    found = {}
    for name, lines in answer.journals.items():
        if RUN_NAME.fullmatch(name):
            # lines that were sent again after a lost connection appear twice
            run = gather(name, dict.fromkeys(lines), lambda begin: begin.get("run") == running)
            if run.begin.get("cluster", cluster.name) == cluster.name:
                found[name] = run
    return found
