"""The journal of a run, written while it runs.

One file per run below the cluster's state folder, JSON lines, only ever appended to. A line is on
the disk before the next phase of the run begins, and within a fraction of a second otherwise; the
last line of a run that was killed may be cut off, and readers leave it out.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rackwright import __version__
from rackwright.atomic_write import sync_folder
from rackwright.errors import RackwrightError
from rackwright.plan.node_plan import PlanResult
from rackwright.state_folder import state_folder, state_root

_SYNC_SECONDS = 0.2


def plan_hash(plan: PlanResult) -> str:
    """Digest of what a plan would do, equal for equal plans."""
    text = json.dumps(plan.to_json()["nodes"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Journal:
    """The record of one run; a context manager, and a Watcher for the engine."""

    def __init__(
        self,
        cluster: str,
        file: Path,
        *,
        limit: str | None,
        roles: frozenset[str] | None,
        deploy: str | None = None,
        policy: Mapping[str, Any] | None = None,
    ) -> None:
        """`deploy`: the deploy, if it is not the site's; `policy`: what resume needs to continue the same way."""
        self.run = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        self._path = _folder(cluster) / f"{self.run}.jsonl"
        self._synced = 0.0
        self._planned: dict[str, set[tuple[str, str]]] = {}
        self._begin = {
            "run": self.run,
            "cluster": cluster,
            "file": str(file),
            "limit": limit,
            "roles": sorted(roles) if roles is not None else None,
            "deploy": deploy,
            "policy": dict(policy or {}),
            "user": getpass.getuser(),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "command": " ".join(["rackwright", *sys.argv[1:]]),
            "rackwright": __version__,
        }

    def __enter__(self) -> Self:
        self._file = self._path.open("a")
        self._path.chmod(0o600)
        sync_folder(self._path.parent)
        self.write("begin", sync=True, **self._begin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.write("end", sync=True, outcome="finished" if kind is None else f"ended by {kind.__name__}")
        self._file.close()

    def write(self, event: str, *, sync: bool = False, **data: Any) -> None:  # noqa: ANN401 - JSON data
        """Append one line."""
        now = time.time()
        self._file.write(json.dumps({"at": round(now, 3), "event": event, **data}) + "\n")
        self._file.flush()
        if sync or now - self._synced > _SYNC_SECONDS:
            os.fsync(self._file.fileno())
            self._synced = now

    def planned(self, plan: PlanResult) -> None:
        """The plan that was agreed to."""
        self._planned = {
            name: {(operation.role, operation.name) for operation in node.operations}
            for name, node in plan.nodes.items()
        }
        counts = {name: node.changes for name, node in plan.nodes.items()}
        self.write("plan", sync=True, hash=plan_hash(plan), file_sha256=plan.sha256, changes=counts)

    def __call__(self, event: dict[str, Any]) -> None:
        """Note an event of the engine: operations that were planned or changed something, and nodes."""
        kind = event["event"]
        if kind == "started":
            if (event["role"], event["name"]) in self._planned.get(event["node"], ()):
                self.write("start", node=event["node"], role=event["role"], name=event["name"])
        elif kind == "finished" and (event["changed"] or event["error"]):
            outcome = event["error"] or "changed"
            self.write("finish", node=event["node"], role=event["role"], name=event["name"], outcome=outcome)
        elif kind == "applied":
            outcome = event["outcome"]
            self.write(
                "node",
                node=outcome["node"],
                ok=outcome["ok"],
                changed=len(outcome["operations"]),
                error=outcome["error"],
            )


@dataclass
class Run:
    """One run, read back."""

    run: str
    begin: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] | None = None
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    open_operations: list[dict[str, Any]] = field(default_factory=list)
    """Started and not known to have ended."""
    end: dict[str, Any] | None = None
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def state(self) -> str:
        """`running`, `finished`, `failed` (some node) or `interrupted`."""
        if self.end is None:
            return "running" if _is_alive(self.begin) else "interrupted"
        if self.end["outcome"] != "finished":
            return "interrupted"
        return "finished" if all(node["ok"] for node in self.nodes.values()) else "failed"


def read_run(run: str) -> Run:
    """A run of any cluster by its name; RackwrightError if there is none."""
    for path in _files():
        if path.stem == run:
            return _gathered(path)
    known = ", ".join([path.stem for path in _files()][-3:])
    raise RackwrightError(f"There is no run {run}.", hint=f"the latest are {known or 'none'}")


def runs(cluster: str = "*") -> list[Run]:
    """Every run of one cluster or of all, oldest first."""
    return [_gathered(path) for path in _files(cluster)]


def append(cluster: str, run: str, event: str, **data: Any) -> None:  # noqa: ANN401 - JSON data
    """Add an event of a later run to the journal of one that ended."""
    with (_folder(cluster) / f"{run}.jsonl").open("a+b") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
        start = b"" if file.read() in (b"", b"\n") else b"\n"  # the run was killed within a line
        line = json.dumps({"at": round(time.time(), 3), "event": event, **data})
        file.write(start + line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _files(cluster: str = "*") -> list[Path]:
    return sorted(state_root().glob(f"{cluster}/runs/*.jsonl"), key=lambda path: path.stem)


def _gathered(path: Path) -> Run:
    run = Run(path.stem)
    for line in path.read_text().splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue  # the line that was being written when the run was killed
        run.events.append(event)
        kind = event["event"]
        if kind == "begin":
            run.begin = event
        elif kind == "plan":
            run.plan = event
        elif kind == "node":
            run.nodes[event["node"]] = event
        elif kind == "end":
            run.end = event
        elif kind == "start":
            run.open_operations.append(event)
        elif kind == "finish":
            _close(run.open_operations, event)
    return run


def _close(started: list[dict[str, Any]], ended: dict[str, Any]) -> None:
    for event in started:
        if all(event[key] == ended[key] for key in ("node", "role", "name")):
            started.remove(event)
            return


def _is_alive(begin: dict[str, Any]) -> bool:
    if begin.get("host") != socket.gethostname():
        return False
    try:
        command = Path(f"/proc/{begin['pid']}/cmdline").read_bytes()
    except (OSError, KeyError):
        return False
    return b"rackwright" in command


def _folder(cluster: str) -> Path:
    folder = state_folder(cluster) / "runs"
    folder.mkdir(exist_ok=True)
    return folder
