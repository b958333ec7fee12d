"""The journal of a run, written while it runs.

One append-only file of JSON lines per run, in the cluster's state folder. A line is on
disk before the next phase of the run starts, and otherwise within a fraction of a second; if a run was killed,
its last line may be incomplete, and readers ignore it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rackwright import __version__
from rackwright.atomic_write import sync_folder
from rackwright.engine.journal_lines import Run, gather
from rackwright.engine.run_lock import who
from rackwright.errors import RackwrightError
from rackwright.plan.node_plan import PlanResult
from rackwright.state_folder import state_folder, state_root

_SYNC_SECONDS = 0.2
_WORD = re.compile(r"[a-z]+(-[a-z]+)*")
"""Words of a command line, without flags and cluster file paths."""


def plan_hash(plan: PlanResult) -> str:
    """Digest of a plan's actions, equal for equal plans."""
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
        watch: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        """`deploy`: the deploy, if it is not the site's; `policy`: what resume needs to continue the same way.

        `watch` also receives every `step`.
        """
        self.run = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        self._path = state_folder(cluster) / "runs" / f"{self.run}.jsonl"
        self._synced = 0.0
        self._torn = False
        self.mirror: Callable[[str, str], None] | None = None
        """Receives the run and each line: the head keeps it for other operators."""
        self.failure: str | None = None
        """Why the journal could not be written at some point; the run must then start nothing new."""
        self._watch = watch
        self._planned: dict[str, set[tuple[str, str]]] = {}
        self._begin = {
            "run": self.run,
            "cluster": cluster,
            "file": str(file),
            "limit": limit,
            "roles": sorted(roles) if roles is not None else None,
            "deploy": deploy,
            "policy": dict(policy or {}),
            **who(),
            "process": _process(os.getpid()),
            "rackwright": __version__,
        }

    def __enter__(self) -> Self:
        """RackwrightError if it cannot be written: nothing has been changed yet."""
        try:
            self._path.parent.mkdir(exist_ok=True)
            self._file = self._path.open("ab", buffering=0)
            self._path.chmod(0o600)
            self._write("begin", sync=True, **self._begin)
            sync_folder(self._path.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
            raise RackwrightError(
                f"Cannot write the journal {self._path}: {error.strerror}. Nothing was changed.",
                hint="free space there, or set XDG_STATE_HOME to a folder on another disk, e.g. /var/tmp/state",
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.write("end", sync=True, outcome="finished" if kind is None else f"ended by {kind.__name__}")
        self._file.close()

    def write(self, event: str, *, sync: bool = False, **data: Any) -> None:  # noqa: ANN401 - JSON data
        """Append one line. A full or broken disk does not stop the run immediately: see `failure`."""
        try:
            self._write(event, sync=sync, **data)
        except OSError as error:
            self._torn = True
            self.failure = self.failure or f"cannot write {self._path}: {error.strerror}"

    def step(self, event: str, **data: Any) -> None:  # noqa: ANN401 - JSON data
        """Append one line about whole waves of nodes: on disk when this returns, and passed to watchers."""
        self.write(event, sync=True, **data)
        if self._watch is not None:
            self._watch({"event": event, **data})

    def _write(self, event: str, *, sync: bool, **data: Any) -> None:  # noqa: ANN401
        line = event_line(event, **data)
        if self.mirror is not None:
            self.mirror(self.run, line)
        text = (b"\n" if self._torn else b"") + line.encode() + b"\n"
        if self._file.write(text) != len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._torn = False
        now = time.monotonic()
        if sync or now - self._synced > _SYNC_SECONDS:
            os.fsync(self._file.fileno())
            self._synced = now

    def planned(self, plan: PlanResult) -> None:
        """The plan that was confirmed."""
        self._planned = {
            name: {(operation.role, operation.name) for operation in node.operations}
            for name, node in plan.nodes.items()
        }
        counts = {name: node.changes for name, node in plan.nodes.items()}
        self.write("plan", sync=True, hash=plan_hash(plan), file_sha256=plan.sha256, changes=counts)

    def __call__(self, event: dict[str, Any]) -> None:
        """Record an event of the engine: operations that were planned or changed something, and nodes."""
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


def known_run(run: str) -> Run | None:
    """A run of this user on this machine, of any cluster."""
    return next((_gathered(path) for path in _files() if path.stem == run), None)


def read_run(run: str) -> Run:
    """A run of any cluster by its name; RackwrightError if there is none."""
    if (found := known_run(run)) is not None:
        return found
    known = ", ".join([path.stem for path in _files()][-3:])
    raise RackwrightError(
        f"Run {run} was not found among the runs of this user on this machine.",
        hint=f"the latest are {known or 'none'}; for those of other operators: rackwright runs FILE",
    )


def runs(cluster: str = "*") -> list[Run]:
    """Every run of one cluster or of all, oldest first."""
    return [_gathered(path) for path in _files(cluster)]


def newest_runs(cluster: str, count: int, max_bytes: int) -> list[Run]:
    """The newest runs of a cluster, oldest first; journals longer than `max_bytes` are left out."""
    return [_gathered(path) for path in _files(cluster)[-count:] if path.stat().st_size <= max_bytes]


def last_runs(cluster: str) -> dict[str, Run]:
    """The newest finished run of each command, by its words, e.g. `apply` or `drift install`."""
    found: dict[str, Run] = {}
    for path in reversed(_files(cluster)):
        command = _command(path)
        if command is not None and command not in found and (run := _gathered(path)).exit_status is not None:
            found[command] = run
    return found


def _command(path: Path) -> str | None:
    """Reads only the first line: journals can be long, and there may be thousands. None if it is damaged."""
    with path.open(errors="replace") as file:
        begin = gather(path.stem, [file.readline()], lambda begin: False).begin
    words = takewhile(_WORD.fullmatch, str(begin.get("command", "")).split()[1:3])
    return " ".join(words) or None


def append(cluster: str, run: str, event: str, **data: Any) -> None:  # noqa: ANN401 - JSON data
    """Append an event of a later run to the journal of a finished one; does nothing for a run of another machine."""
    with contextlib.suppress(OSError), (state_folder(cluster) / "runs" / f"{run}.jsonl").open("r+b") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
        start = b"" if file.read() in (b"", b"\n") else b"\n"  # the run was killed in the middle of a line
        file.write(start + event_line(event, **data).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def event_line(event: str, **data: Any) -> str:  # noqa: ANN401
    """One line of a journal, as of now."""
    return json.dumps({"at": round(time.time(), 3), "event": event, **data})


def _files(cluster: str = "*") -> list[Path]:
    return sorted(state_root().glob(f"{cluster}/runs/*.jsonl"), key=lambda path: path.stem)


def _gathered(path: Path) -> Run:
    # not splitlines(), which also splits at bytes like \x0b, which a damaged disk may contain
    return gather(path.stem, path.read_bytes().decode(errors="replace").split("\n"), _is_alive)


def _is_alive(begin: dict[str, Any]) -> bool:
    """Whether the process that started it is alive: its id may have been reused."""
    if begin.get("host") != socket.gethostname():
        return False
    try:
        command = Path(f"/proc/{begin['pid']}/cmdline").read_bytes()
        same = begin.get("process") in (None, _process(begin["pid"]))
    except (OSError, KeyError, ValueError, IndexError):
        return False
    return same and b"rackwright" in command


def _process(pid: int) -> str:
    """Boot and start time of a process: together with its id, a permanent identity."""
    started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {started}"
