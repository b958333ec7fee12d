"""Runs PromQL on the cluster's Prometheus: a program goes to its node by ssh and asks there (rackwright.prometheus.program)."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, TypeAdapter

from rackwright.boundary import Refused, last_line, printable, read_json_as
from rackwright.errors import ConnectionFailed, RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.monitoring import USER, CollectsMetrics
from rackwright.model.services import IssuesCertificates
from rackwright.node_programs import python_command
from rackwright.ssh import Pool, RootShell

PROGRAM = "rackwright.prometheus.program"
BATCH = 64
"""Queries of one execution on the node."""
QUERY_SECONDS = 20
ANSWER_BYTES = 8 << 20
BATCH_BYTES = 15 << 20
"""Less than what ssh takes of one command (rackwright.ssh.OUTPUT_MAX_BYTES)."""
_START_SECONDS = 20


@dataclass(frozen=True)
class Query:
    """An expression, now or over a span of time."""

    expression: str
    over_seconds: float | None = None
    """None: one value of each series, at `end`."""
    step_seconds: float = 30
    """Between two points of a span."""
    end: float | None = None
    """Seconds since 1970. None: now, by the clock of Prometheus' node."""


@dataclass(frozen=True)
class Series:
    """Labels, and points in order: seconds since 1970 and value."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]

    @property
    def last(self) -> float:
        """The newest value; not a number where there is none."""
        return self.points[-1][1] if self.points else math.nan


@dataclass(frozen=True)
class Result:
    """What Prometheus answered to one query: series, which may be none, or why there is no answer."""

    query: Query
    series: tuple[Series, ...] = ()
    error: str | None = None
    silent: bool = False
    """Whether Prometheus did not answer at all."""


class _Line(BaseModel):
    """About one query, as the program prints it."""

    model_config = ConfigDict(extra="forbid")

    n: int
    series: list[tuple[dict[str, str], list[tuple[float, float]]]] = []
    error: str | None = None
    silent: bool = False


_LINE = TypeAdapter(_Line)


@dataclass(frozen=True)
class Prometheus:
    """One of the cluster's, and how it is asked on its node."""

    node: str
    url: str
    password_file: str
    ca_file: str | None
    interval_seconds: int
    """Between two points of a series, as a rule."""


def collectors(cluster: Cluster) -> tuple[Prometheus, ...]:
    """The one of the primary head first; RackwrightError where none is declared."""
    found = []
    for node in sorted(cluster.nodes, key=lambda node: not node.primary):
        collector, ca = node.offers(CollectsMetrics), node.offers(IssuesCertificates)
        if collector is not None:
            url, trusted = collector.metrics_url(cluster, node), None if ca is None else ca.trust_file
            interval = collector.interval_seconds
            found.append(Prometheus(node.name, url, collector.password_file, trusted, interval))
    if not found:
        raise RackwrightError(
            f"Cluster {cluster.name} declares no Prometheus.",
            hint="add the role `prometheus: {}` and apply",
        )
    return tuple(found)


def run_queries(
    cluster: Cluster,
    queries: Sequence[Query],
    *,
    limit_seconds: float = 180,
    shell: RootShell | None = None,
) -> tuple[Result, ...]:
    """The result of each query, in their order; a query that fails is a result with an error.

    Of a pair of Prometheus servers the first that answers is asked. RackwrightError where no node of one can be reached.
    `shell`: connections to use instead of new ones.
    """
    if shell is None:
        with Pool(cluster) as pool:
            return run_queries(cluster, queries, limit_seconds=limit_seconds, shell=pool)
    why = []
    silent: tuple[Result, ...] = ()
    for server in collectors(cluster):
        try:
            results = _asked(server, shell, queries, limit_seconds)
        except ConnectionFailed as error:
            why.append(error.message.rstrip("."))
            continue
        if not all(one.silent for one in results):
            return results
        silent = silent or results
    if silent or not queries:
        return silent
    raise RackwrightError(f"Cannot query Prometheus: {'; '.join(why)}.")


def _asked(
    server: Prometheus, pool: RootShell, queries: Sequence[Query], limit_seconds: float
) -> tuple[Result, ...]:
    deadline = time.monotonic() + limit_seconds
    found: list[Result] = []
    for start in range(0, len(queries), BATCH):
        batch = queries[start : start + BATCH]
        left = deadline - time.monotonic()
        if left <= 0:
            found += [Result(query, error="not queried: the time was up") for query in batch]
        else:
            found += _batch(server, pool, batch, left)
    return tuple(found)


def _batch(server: Prometheus, pool: RootShell, queries: Sequence[Query], seconds: float) -> list[Result]:
    command, program = python_command(PROGRAM)
    asked = json.dumps(_document(server, queries, seconds)).encode()
    ran = pool.run(server.node, command, stdin=program + asked, timeout=seconds + _START_SECONDS)
    results = [Result(query, error="no answer came") for query in queries]
    try:
        for line in ran.stdout.splitlines():
            one = read_json_as(_LINE, line)
            if 0 <= one.n < len(results):
                results[one.n] = _result(queries[one.n], one)
    except Refused as error:
        raise RackwrightError(f"{server.node}: the answers of Prometheus are invalid: {error}.") from error
    if ran.exit_status != 0 and not ran.stdout:
        raise RackwrightError(
            f"{server.node}: cannot query Prometheus: {last_line(ran.stdout, ran.stderr)}.",
            hint="check whether it is installed and running: rackwright verify",
        )
    return results


def _document(server: Prometheus, queries: Sequence[Query], seconds: float) -> Mapping[str, object]:
    return {
        "url": server.url,
        "user": USER,
        "password_file": server.password_file,
        "ca_file": server.ca_file,
        "limits": {
            "query_seconds": QUERY_SECONDS,
            "seconds": seconds,
            "answer_bytes": ANSWER_BYTES,
            "bytes": BATCH_BYTES,
        },
        "queries": [
            {"query": one.expression, "over": one.over_seconds, "step": one.step_seconds, "end": one.end}
            for one in queries
        ],
    }


def _result(query: Query, one: _Line) -> Result:
    if one.error is not None:
        return Result(query, error=printable(one.error, 300), silent=one.silent)
    series = [
        Series({printable(name, 200): printable(text, 2000) for name, text in labels.items()}, tuple(points))
        for labels, points in one.series
    ]
    return Result(query, tuple(series))
