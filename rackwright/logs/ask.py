"""Queries the declared log store, with a reader that runs on its server for the duration of the query."""

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
"""Reader program by kind of store."""
SECONDS = 60
LATE_SECONDS = 1200
"""Maximum age of a healthy node's newest line: a timer of the role logs writes one every five minutes."""
JOB_BEFORE_SECONDS = 60
JOB_AFTER_SECONDS = 120
"""The epilog and late kernel messages belong to the job too."""
CLOCKS_DIFFER_SECONDS = 60


@dataclass(frozen=True)
class LogQuery:
    """A query. Times are seconds since the epoch."""

    since: float | None = None
    """None: one day, or the time of the job."""
    until: float | None = None
    """None: now."""
    nodes: str | None = None
    """A NodeSet; None: all nodes, or those of the job."""
    job: str | None = None
    unit: str | None = None
    grep: str | None = None
    """Text in a message, case-insensitive."""
    priority: int | None = None
    """Lowest severity to return, as a syslog number: 3 is `err`."""
    audit: bool = False
    lines: int = 1000
    """Maximum number of lines; the newest are kept."""


def store_of(cluster: Cluster) -> LogStore:
    """The cluster's log store; RackwrightError if there is none."""
    for node in cluster.nodes:
        role = node.offers(KeepsLogs)
        if role is not None:
            return role.log_store(cluster)
    raise RackwrightError(
        f"{cluster.path} declares no central log store.",
        hint="add the role `logs: {}`, which collects the journals of all nodes on the primary head",
    )


def read_logs(
    cluster: Cluster, question: LogQuery, shell: RootShell, trace: JobTrace | None = None
) -> LogsReport:
    """The newest matching lines, oldest first. `trace`: the job's, if already known.

    RackwrightError if the query is impossible: no store is declared, a node or job is unknown, or the server
    is unreachable. What is missing from an answer is listed in `unknown`.
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
    """Where a job logs; RackwrightError if the workload manager does not know it."""
    manager = manager_of(cluster, shell)
    if manager is None:
        raise RackwrightError(
            f"{cluster.path} declares no workload manager to look up job {printable(job, 60)}.",
            hint="use --nodes and --since instead of --job",
        )
    return manager.trace(job)


def _nodes(cluster: Cluster, nodeset: str | None, trace: JobTrace | None) -> tuple[Node, ...]:
    """A job's nodes, and the servers that log about it."""
    nodes = pick(cluster, nodeset)
    if trace is not None:
        about = {*trace.nodes, *trace.servers}
        nodes = tuple(node for node in nodes if node.name in about)
    if not nodes:
        raise RackwrightError(
            "The node selection is empty."
            if trace is None
            else f"Job {trace.id} did not run on {printable(str(nodeset), 100)}.",
            hint=f"its nodes are {fold(cluster.by_name if trace is None else (*trace.nodes, *trace.servers))}",
        )
    return nodes


def _times(question: LogQuery, trace: JobTrace | None, now: float) -> tuple[float, float]:
    since, until = question.since, question.until
    if trace is not None:
        since = trace.submitted - JOB_BEFORE_SECONDS if since is None else since
        until = _end(trace, now) if until is None else until
    since = now - 86400 if since is None else since
    until = now + CLOCKS_DIFFER_SECONDS if until is None else until
    if since > until:
        raise RackwrightError("--since is later than --until.")
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
    """The reader's validated answer; RackwrightError if there is none."""
    command, program = python_command(READERS[store.kind])
    stdin = program + json.dumps(request).encode()
    try:
        answer = shell.run(
            store.server, f"timeout -k 1 {SECONDS + 20} {command}", stdin=stdin, timeout=SECONDS + 30
        )
    except ConnectionFailed as error:
        raise ConnectionFailed(
            f"The log store on {store.server} is unreachable: {error.message}",
            hint=error.hint,
        ) from error
    if answer.exit_status != 0:
        raise RackwrightError(
            f"{store.server}: the reader of its logs exited {answer.exit_status}: {last_line('', answer.stderr)}",
            hint="for details: rackwright verify --role logs",
        )
    try:
        found = read_json(answer.stdout)
        if isinstance(found, dict) and isinstance(found.get("unreadable"), str):
            raise RackwrightError(
                f"{store.server}: {printable(found['unreadable'], 300)}",
                hint="for details: rackwright verify --role logs",
            )
        return validated(ANSWER, found)
    except Refused as error:
        raise RackwrightError(f"{store.server}: the log reader's answer is invalid: {error}") from error


def _late(
    newest: dict[str, float | None], nodes: Sequence[Node], now: float, until: float, place: str
) -> list[str]:
    """Nodes that have sent nothing, or nothing recently: missing lines then prove nothing."""
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
