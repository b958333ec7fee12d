"""Asks the store that a cluster declares, with a reader that runs on its server for as long as that takes."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rackwright.boundary import Refused, last_line, printable, read_json, validated
from rackwright.errors import ConnectionFailed, RackwrightError
from rackwright.logs.report import ANSWER, Line, LogsReport
from rackwright.model.cluster import Cluster, Node
from rackwright.model.logs import KeepsLogs, LogStore
from rackwright.model.ranges import fold
from rackwright.model.selection import pick
from rackwright.node_programs import python_command
from rackwright.ssh import RootShell
from rackwright.workload.lookup import manager_of
from rackwright.workload.protocol import JobTrace

READERS = {
    "journal": "rackwright.logs.read_journal",
    "loki": "rackwright.logs.read_loki",
    "search": "rackwright.logs.read_search",
}
"""Program by kind of store."""
SECONDS = 60
LATE_SECONDS = 1200
"""A node's newest line may be so old: a timer of the role logs writes one each five minutes."""
JOB_BEFORE_SECONDS = 60
JOB_AFTER_SECONDS = 120
"""The epilog, and what the kernel says late, are of the job too."""
CLOCKS_DIFFER_SECONDS = 60


@dataclass(frozen=True)
class Question:
    """What is wanted. Times are seconds since the epoch."""

    since: float | None = None
    """None: a day, or the time of the job."""
    until: float | None = None
    """None: now."""
    nodes: str | None = None
    """A NodeSet; None: all, or those of the job."""
    job: str | None = None
    unit: str | None = None
    grep: str | None = None
    """Text in a message, in lower or upper case."""
    priority: int | None = None
    """The least important that is wanted, as syslog numbers them: 3 is `err`."""
    audit: bool = False
    lines: int = 1000
    """The newest so many."""


def store_of(cluster: Cluster) -> LogStore:
    """Where a cluster keeps its lines; RackwrightError where it does not."""
    for node in cluster.nodes:
        role = node.offers(KeepsLogs)
        if role is not None:
            return role.log_store(cluster)
    raise RackwrightError(
        f"{cluster.path} declares no central place for logs.",
        hint="add the role `logs: {}`, which brings the journals of all nodes to the primary head",
    )


def read_logs(
    cluster: Cluster, question: Question, shell: RootShell, trace: JobTrace | None = None
) -> LogsReport:
    """The newest lines that are wanted, oldest first. `trace`: the job's, where it is known already.

    RackwrightError where the question cannot be asked: nothing is declared, a node or a job is not known, the server
    cannot be reached. What is missing of an answer is in `unknown`.
    """
    store = store_of(cluster)
    if trace is None and question.job is not None:
        trace = trace_of(cluster, question.job, shell)
    nodes = _nodes(cluster, question.nodes, trace)
    now = time.time()
    since, until = _times(question, trace, now)
    report = LogsReport(cluster.name, store.kind, store.server, since, until, trace=trace)
    request = {
        "store": dict(store.settings),
        "nodes": [node.name for node in nodes],
        "since": since,
        "until": until,
        "unit": question.unit,
        "grep": question.grep,
        "priority": question.priority,
        "audit": question.audit,
        "lines": question.lines,
        "seconds": SECONDS,
        "job": None if trace is None else _job(trace, now),
    }
    answer = _ask(store, request, shell)
    unknown = [*answer.problems, *_late(answer.newest, nodes, answer.now, until, _place(store))]
    if trace is not None and trace.strangers:
        unknown.append(f"the cluster file does not declare {fold(trace.strangers)}, where job {trace.id} ran")
    return replace(
        report,
        lines=tuple(_declared(answer.lines, nodes)),
        more=answer.more,
        newest={node.name: answer.newest.get(node.name) for node in nodes},
        unknown=tuple(printable(text, 400) for text in unknown),
    )


def _declared(lines: Sequence[Line], nodes: Sequence[Node]) -> list[Line]:
    names = {node.name for node in nodes}
    return sorted((line for line in lines if line.node in names), key=lambda line: line.at)


def trace_of(cluster: Cluster, job: str, shell: RootShell) -> JobTrace:
    """Where a job leaves lines; RackwrightError where the workload manager does not say."""
    manager = manager_of(cluster, shell)
    if manager is None:
        raise RackwrightError(
            f"{cluster.path} declares no workload manager that could know job {printable(job, 60)}.",
            hint="leave out --job, and name nodes and times",
        )
    return manager.trace(job)


def _nodes(cluster: Cluster, nodeset: str | None, trace: JobTrace | None) -> tuple[Node, ...]:
    """Those of a job are its own, and the servers that write about it."""
    nodes = pick(cluster, nodeset)
    if trace is not None:
        about = {*trace.nodes, *trace.servers}
        nodes = tuple(node for node in nodes if node.name in about)
    if not nodes:
        raise RackwrightError(
            "No node was named."
            if trace is None
            else f"Job {trace.id} has nothing to do with {printable(str(nodeset), 100)}.",
            hint=f"its nodes are {fold(cluster.by_name if trace is None else (*trace.nodes, *trace.servers))}",
        )
    return nodes


def _times(question: Question, trace: JobTrace | None, now: float) -> tuple[float, float]:
    since, until = question.since, question.until
    if trace is not None:
        since = trace.submitted - JOB_BEFORE_SECONDS if since is None else since
        until = _end(trace, now) if until is None else until
    since = now - 86400 if since is None else since
    until = now + CLOCKS_DIFFER_SECONDS if until is None else until
    if since > until:
        raise RackwrightError("The time since which lines are wanted is later than the time until which.")
    return since, until


def _end(trace: JobTrace, now: float) -> float:
    return now + CLOCKS_DIFFER_SECONDS if trace.ended is None else trace.ended + JOB_AFTER_SECONDS


def _job(trace: JobTrace, now: float) -> dict[str, Any]:
    return {
        "nodes": list(trace.nodes),
        "servers": list(trace.servers),
        "units": list(trace.units),
        "cgroup": trace.cgroup,
        "named": trace.named,
        "since": None if trace.started is None else trace.started - JOB_BEFORE_SECONDS,
        "until": _end(trace, now),
    }


def _ask(store: LogStore, request: dict[str, Any], shell: RootShell) -> Any:  # noqa: ANN401
    """The validated answer of the reader; WorkloadError never, RackwrightError where there is none."""
    command, program = python_command(READERS[store.kind])
    stdin = program + json.dumps(request).encode()
    try:
        said = shell.run(
            store.server, f"timeout -k 1 {SECONDS + 20} {command}", stdin=stdin, timeout=SECONDS + 30
        )
    except ConnectionFailed as error:
        raise ConnectionFailed(
            f"The lines of all nodes are kept on {store.server}, which cannot be reached: {error.message}",
            hint=error.hint,
        ) from error
    if said.exit_status != 0:
        raise RackwrightError(
            f"{store.server}: the reader of its logs exited {said.exit_status}: {last_line('', said.stderr)}",
            hint="rackwright verify --role logs says more",
        )
    try:
        found = read_json(said.stdout)
        if isinstance(found, dict) and isinstance(found.get("unreadable"), str):
            raise RackwrightError(
                f"{store.server}: {printable(found['unreadable'], 300)}",
                hint="rackwright verify --role logs says more",
            )
        return validated(ANSWER, found)
    except Refused as error:
        raise RackwrightError(
            f"{store.server}: the answer of the reader of its logs is not used: {error}"
        ) from error


def _late(
    newest: dict[str, float | None], nodes: Sequence[Node], now: float, until: float, place: str
) -> list[str]:
    """Nodes that have sent nothing, or not lately: that there is no line of theirs then says nothing."""
    silent = [node.name for node in nodes if newest.get(node.name) is None]
    found = [f"{place} has no line of {fold(silent)}"] if silent else []
    for node in nodes:
        at = newest.get(node.name)
        if at is not None and at < min(until, now) - LATE_SECONDS:
            ago = _ago(now - at)
            found.append(f"the newest line of {node.name} is {ago} old: later ones have not reached {place}")
    return found


def _place(store: LogStore) -> str:
    return "the search cluster" if store.kind == "search" else store.server


def _ago(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 60:.0f} min"
