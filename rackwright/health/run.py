"""Runs the probe on all nodes in parallel and judges the documents here."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackwright.boundary import Refused, last_line
from rackwright.errors import ConnectionFailed, ExitCode, RackwrightError
from rackwright.health.declare import expected_of
from rackwright.health.expected import Expected
from rackwright.health.judge import hardest, judge, worst
from rackwright.health.received import read_document
from rackwright.health.records import is_time
from rackwright.health.redact import Redactor
from rackwright.health.request import request_of
from rackwright.health.verdict import SEVERITY, Action, HealthResult
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.model.selection import pick
from rackwright.node_programs import PROBE, one_text
from rackwright.ssh import Pool, RootShell
from rackwright.ssh.side_by_side import side_by_side
from rackwright.status import Status

WORKERS_MAX = 64
SECONDS = 40
"""Time limit of a node for the whole probe; the probe's own deadlines are far shorter."""
EXIT_CODES = {Status.FAIL: ExitCode.CHECK_FAILED, Status.UNKNOWN: ExitCode.UNKNOWN}


@dataclass(frozen=True)
class NodeHealth:
    """One node's document as received, and its results."""

    node: str
    document: Any
    results: tuple[HealthResult, ...]
    why: str | None = None
    """Why there is no document."""

    @property
    def status(self) -> Status:
        """The status that decides."""
        return worst(self.results)

    @property
    def action(self) -> Action:
        """The hardest action of any result."""
        return hardest(self.results)

    def to_json(self) -> dict[str, Any]:
        """As plain data, without the document."""
        data = self.document if isinstance(self.document, dict) else {}
        return {
            "node": self.node,
            "status": self.status.value,
            "action": self.action.value,
            "why": self.why,
            **{key: _number(data.get(key)) for key in ("taken_at", "seconds", "cpu_seconds")},
            "results": [one.to_json() for one in self.results],
        }


def _number(value: Any) -> float | None:  # noqa: ANN401
    return value if is_time(value) else None


@dataclass(frozen=True)
class FleetHealth:
    """Every node that was probed."""

    cluster: str
    nodes: tuple[NodeHealth, ...]
    not_saved: Mapping[str, str] = field(default_factory=dict)
    """Why a node's document was not written, by node."""

    @property
    def results(self) -> tuple[HealthResult, ...]:
        """Every result of every node."""
        return tuple(result for node in self.nodes for result in node.results)

    @property
    def status(self) -> Status:
        """The status that decides."""
        return worst(self.results)

    @property
    def exit_code(self) -> ExitCode:
        """Exit status of `rackwright health`."""
        return EXIT_CODES.get(self.status, ExitCode.CLEAN)

    @property
    def verdict(self) -> str:
        """One line: the number of nodes by status."""
        counts = Counter(node.status for node in self.nodes)
        listed = ", ".join(f"{counts[status]} {status.value}" for status in SEVERITY if counts[status])
        return f"{len(self.nodes)} nodes of {self.cluster}: {listed or 'none'}"

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "cluster": self.cluster,
            "status": self.status.value,
            "nodes": [node.to_json() for node in self.nodes],
            "not_saved": dict(self.not_saved),
        }


def health(
    cluster: Cluster,
    *,
    limit: str | None = None,
    fast: bool = False,
    save: Path | None = None,
    redact: bool = False,
    shell: RootShell | None = None,
    progress: Callable[[NodeHealth], None] | None = None,
) -> FleetHealth:
    """Probe the nodes of a cluster over ssh, one execution each, and judge every document.

    `save` is a folder for the documents, NODE.json each; `redact` removes the names from them (`redact.py`).
    Never raises because of a node.
    """
    nodes = pick(cluster, limit)
    if not nodes:
        raise RackwrightError("No node was selected.", hint=f"nodes of the cluster: {fold(cluster.by_name)}")

    def one(node: Node) -> NodeHealth:
        expected = expected_of(cluster, node)
        found = _judged(node.name, expected, *_read(reached, node, expected, fast=fast))
        if progress is not None:
            progress(found)
        return found

    with ExitStack() as stack:
        reached = shell if shell is not None else stack.enter_context(Pool(cluster))
        executor = stack.enter_context(side_by_side(min(WORKERS_MAX, len(nodes))))
        found = tuple(executor.map(one, nodes))
    not_saved = {}
    if save is not None:
        not_saved = _save(save, found, Redactor(hosts=cluster.by_name) if redact else None)
    return FleetHealth(cluster.name, found, not_saved)


def _read(shell: RootShell, node: Node, expected: Expected, *, fast: bool) -> tuple[Any, str | None]:
    """The document of a node, or why there is none."""
    request = json.dumps({"fast": fast, **request_of(expected)})
    command = f"timeout -k 1 {SECONDS} python3 - {_quoted(request)}"
    try:
        reply = shell.run(node.name, command, stdin=one_text(PROBE), timeout=SECONDS + 5)
    except ConnectionFailed as error:
        return None, error.message
    try:
        document = read_document(reply.stdout)
    except Refused as error:
        if reply.exit_status == 0 and reply.stdout:
            return None, f"the probe's answer was rejected: {error}"
        words = last_line(reply.stdout, reply.stderr)
        return None, f"the probe exited {reply.exit_status}: {words}"
    # the request, not the node, decides which checks run
    return ({**document, "fast": fast} if isinstance(document, dict) else document), None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _judged(node: str, expected: Expected, document: Any, why: str | None) -> NodeHealth:  # noqa: ANN401
    if why is not None:
        results = [_unreachable(one, why) for one in judge(expected, document)]
        return NodeHealth(node, None, tuple(results), why)
    return NodeHealth(node, document, tuple(judge(expected, document)))


def _unreachable(result: HealthResult, why: str) -> HealthResult:
    """The same result with the reason for the whole node."""
    if result.status is not Status.UNKNOWN:
        return result
    return HealthResult(
        result.node, result.check, result.claim, result.area, Status.UNKNOWN, why, Action.NONE, result.remedy
    )


def _save(folder: Path, nodes: Sequence[NodeHealth], redactor: Redactor | None) -> dict[str, str]:
    """Write each document; returns the errors by node. A node without a document is reported in its results."""
    folder.mkdir(parents=True, exist_ok=True)
    not_saved = {}
    for node in nodes:
        document, name = node.document, node.node
        if document is None:
            continue
        if not isinstance(document, dict):
            not_saved[name] = "it is not an object"
            continue
        if redactor is not None:
            try:
                document = redactor.document({**document, "node": name})
            except Refused as error:  # rather no file than one with names in it
                not_saved[name] = str(error)
                continue
            name = redactor.word("node", name)
        (folder / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return not_saved


def judge_saved(expected: Expected, text: str, *, fresh: bool = False) -> NodeHealth:
    """Judge a saved document offline; `fresh` also checks its age."""
    try:
        document = read_document(text)
    except Refused as error:
        return _judged(expected.node or "unknown", expected, None, f"the document was rejected: {error}")
    results = judge(expected, document, now=time.time() if fresh else None)
    node = results[0].node if results else expected.node or "unknown"
    return NodeHealth(node, document, tuple(results))
