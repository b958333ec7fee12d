"""The worker processes of a run, one per shard, and the nodes that each has not reported yet."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from rackwright.factcache.host_classes import shards
from rackwright.model.cluster import Node
from rackwright.plan.node_plan import NodeOutcome, NodePlan, PlannedOperation, changes_from_json
from rackwright.state_folder import state_folder

IN_SYNC_PER_WORKER = 150
EVALUATED_PER_WORKER = 15
"""Starting a worker takes as long as checking 150 nodes that are in sync, or evaluating 15."""
_STOP_SECONDS = 60
_LOG_TAIL = 12
_LOGS_KEPT = 50

Event = dict[str, Any]


def split(nodes: Sequence[Node], per_worker: int) -> list[dict[str, str]]:
    """Node -> host class for each worker: as many workers as are worth starting, up to one per core.

    Every worker gets a share of each class, so that no worker gets only slow ones.
    """
    pieces = max(1, min(-(-len(nodes) // per_worker), os.cpu_count() or 1))
    ordered = [(node.name, name) for name, members in shards(nodes) for node in members]
    return [dict(ordered[piece::pieces]) for piece in range(pieces)]


def start_process(errors: TextIO) -> subprocess.Popen[str]:
    """A process that waits for its job."""
    return subprocess.Popen(
        # -P: ignore a json.py in the operator's current folder
        [sys.executable, "-P", "-m", "rackwright.pyinfra_driver.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        start_new_session=True,  # a terminal's Ctrl-C reaches only this process
        env={**os.environ, "PYINFRA_PROGRESS": "off"},
    )


def _opened(log: Path) -> TextIO:
    """A worker's log; discarded if the disk is full, because the workers matter more to a running run."""
    try:
        errors = log.open("w")
        log.chmod(0o600)
    except OSError:
        return open(os.devnull, "w")
    return errors


@dataclass(eq=False)
class Worker:
    """One process and what it has not reported yet."""

    process: subprocess.Popen[str]
    log: Path
    nodes: dict[str, str]
    """Name -> host class."""
    waiting_for: set[str] = field(default_factory=set)
    retry: bool = False
    """It replaced a worker that died."""
    apply_when_ready: bool = False
    """It replaced a worker during an apply: what it plans is applied immediately."""
    ended: bool = False

    def order(self, **order: Any) -> None:  # noqa: ANN401 - JSON data
        """Send one line."""
        if self.process.stdin is None:
            return
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # it died: the end of its stdout reports that, and its log has the cause

    def why_it_ended(self) -> str:
        """Why it ended, from its log."""
        try:
            lines = self.log.read_text(errors="replace").strip().splitlines()[-_LOG_TAIL:]
        except OSError as error:
            lines = [f"cannot read the log: {error.strerror}"]
        status = self.process.poll()
        return "\n    ".join([f"its worker process ended (status {status}), log {self.log}:", *lines])


def _event_of(line: str) -> Event | None:
    """The event in a line; None if the session cannot use it."""
    try:
        event = json.loads(line)
        if event["event"] == "planned":
            NodePlan.from_json(event["plan"])
        elif event["event"] == "applied":
            outcome_of(event["outcome"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return dict(event)


def outcome_of(data: dict[str, Any]) -> NodeOutcome:
    """The outcome in an `applied` event."""
    operations = tuple(PlannedOperation.from_json(operation) for operation in data["operations"])
    return NodeOutcome(**{**data, "operations": operations, "reboot": changes_from_json(data["reboot"])})


class Workers:
    """All worker processes of a run; `job` is sent to every one of them."""

    def __init__(self, cluster: str, job: Event) -> None:
        self._job = job
        self._logs = state_folder(cluster) / "log"
        with contextlib.suppress(OSError):
            self._logs.mkdir(exist_ok=True)
        self._events: queue.Queue[tuple[Worker, Event | None]] = queue.Queue()
        self.all: list[Worker] = []
        self.by_node: dict[str, Worker] = {}
        """The worker that has a node now."""
        with contextlib.suppress(OSError):
            for old in sorted(self._logs.glob("worker-*.log"), key=lambda path: path.stat().st_mtime)[
                :-_LOGS_KEPT
            ]:
                old.unlink(missing_ok=True)

    def start(self, nodes: dict[str, str], *, retry: bool = False) -> Worker:
        """A new process; it starts planning its nodes immediately."""
        log = self._logs / f"worker-{os.getpid()}-{len(self.all)}.log"
        with _opened(log) as errors:
            process = start_process(errors)
        worker = Worker(process, log, nodes, set(nodes), retry)
        self.all.append(worker)
        self.by_node.update(dict.fromkeys(nodes, worker))
        threading.Thread(target=self._read, args=(worker,), daemon=True).start()
        worker.order(**self._job, nodes=nodes)
        return worker

    def events(self) -> Iterator[tuple[Worker, Event | None]]:
        """Events until all nodes are reported; None if a worker died with nodes unreported."""
        for worker in self.all:
            if worker.ended and worker.waiting_for:  # since the last phase
                yield worker, None
                worker.waiting_for.clear()
        while any(worker.waiting_for for worker in self.all):
            worker, event = self._events.get()
            if event is not None:
                yield worker, event
                continue
            worker.ended = True
            if worker.waiting_for:
                yield worker, None
                worker.waiting_for.clear()

    def stop(self) -> None:
        """Make every worker finish the current operation, close its connections and exit."""
        for worker in self.all:
            worker.order(stop=True)
        for worker in self.all:
            if worker.process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    worker.process.stdin.close()
            try:
                worker.process.wait(timeout=_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()

    def _read(self, worker: Worker) -> None:
        assert worker.process.stdout is not None  # Popen was given a pipe
        for line in worker.process.stdout:
            event = _event_of(line)
            if event is None:  # it died while writing, or is broken
                worker.process.kill()
                break
            self._events.put((worker, event))
        worker.process.wait()
        self._events.put((worker, None))
