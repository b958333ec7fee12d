"""Where `rackwright top` gets its view from and what it does for the operator, with kept connections and time limits."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

from rackwright.engine.run_lock import who
from rackwright.errors import RackwrightError
from rackwright.live.facts import Absent, Unknown
from rackwright.live.findings import Source as Facts
from rackwright.live.look import look
from rackwright.live.node import Live, LiveNode
from rackwright.model.cluster import Cluster
from rackwright.model.types import Platform
from rackwright.ssh import RootShell
from rackwright.top.view import Jobs, View
from rackwright.workload.lookup import manager_of
from rackwright.workload.protocol import Manager

FAST_SECONDS = 10.0
"""Limit of one look at the workload manager, its jobs and the alerts: a head each."""
SLOW_SECONDS = 30.0
"""Limit of one look at health checks and drift, which may ask every node."""
SLOW_EVERY = 60.0
_FAST = (Facts.SCHEDULER, Facts.ALERTS)
_SLOW = (Facts.HEALTH, Facts.DRIFT)
_NOT_YET = Unknown("it is being asked for the first time")


class Source(Protocol):
    """What the screen needs; calls may take seconds and come from threads. RackwrightError has the reason where one failed."""

    def look(self) -> View:
        """The cluster now."""
        ...

    def why(self, node: str) -> list[str]:
        """The program that explains a node."""
        ...

    def console(self, node: str) -> list[str]:
        """The program that opens a node's console in this terminal."""
        ...

    def drain(self, node: str, reason: str) -> None:
        """Take a node out of service; its jobs go on to their end."""
        ...

    def resume(self, node: str, reason: str) -> None:
        """Put a node back that a person drained for this reason."""
        ...


class ClusterSource:
    """A cluster, asked through kept connections."""

    def __init__(self, cluster: Cluster, shell: RootShell) -> None:
        self._cluster = cluster
        self._shell = shell
        self._asking = ThreadPoolExecutor(1)
        self._slow: Live | None = None
        self._slow_began = -SLOW_EVERY
        self._slow_runs = threading.Lock()

    def look(self) -> View:
        """The workload manager and the alerts now, with the last answers of health checks and drift."""
        self._ask_slowly()
        jobs = self._asking.submit(self._jobs)
        live = look(self._cluster, shell=self._shell, sources=_FAST, seconds=FAST_SECONDS)
        try:
            running: Jobs = jobs.result(timeout=max(0.0, FAST_SECONDS - live.seconds) + 1)
        except TimeoutError:
            jobs.cancel()
            running = Unknown(f"no answer within {FAST_SECONDS:g} s")
        except RackwrightError as error:
            running = Unknown(error.message)
        slow = self._slow
        nodes = {name: _joined(node, slow) for name, node in live.nodes.items()}
        return View(replace(live, nodes=nodes), running, slow.at if slow is not None else None)

    def why(self, node: str) -> list[str]:
        """`rackwright why`: a process that can be ended."""
        return _program("why", str(self._cluster.path), node)

    def console(self, node: str) -> list[str]:
        """Through the BMC where one is declared, else the lab's; RackwrightError where there is neither."""
        declared = self._cluster.by_name[node]
        if declared.bmc is not None:
            return _program("bmc", "console", str(self._cluster.path), node)
        if declared.platform is not Platform.BARE_METAL:
            return _program("lab", "console", node, "--file", str(self._cluster.path))
        raise RackwrightError(f"{node} has no BMC declared.", hint="declare `bmc` for its group: docs/bmc.md")

    def drain(self, node: str, reason: str) -> None:
        """With the operator's name before the reason: workload managers note root."""
        operator = who()
        self._manager().drain_by_hand(node, f"{operator['user']}@{operator['host']}: {reason.strip()}")

    def resume(self, node: str, reason: str) -> None:
        """See Manager.resume_by_hand for what is refused."""
        self._manager().resume_by_hand(node, reason)

    def _manager(self) -> Manager:
        manager = manager_of(self._cluster, self._shell)
        if manager is None:
            raise RackwrightError("The cluster file declares no workload manager.")
        return manager

    def _jobs(self) -> Jobs:
        manager = manager_of(self._cluster, self._shell)
        return manager.running() if manager is not None else Absent("no workload manager is declared")

    def _ask_slowly(self) -> None:
        """Ask for health and drift in the background where that is due and does not go on already."""
        if time.monotonic() - self._slow_began < SLOW_EVERY or not self._slow_runs.acquire(blocking=False):
            return
        self._slow_began = time.monotonic()

        def ask() -> None:
            try:
                self._slow = look(self._cluster, shell=self._shell, sources=_SLOW, seconds=SLOW_SECONDS)
            finally:
                self._slow_runs.release()

        threading.Thread(target=ask, name="health-and-drift", daemon=True).start()


def _joined(fast: LiveNode, slow: Live | None) -> LiveNode:
    if slow is None or fast.name not in slow.nodes:
        return replace(fast, health=_NOT_YET, drift=_NOT_YET)
    return replace(fast, health=slow.nodes[fast.name].health, drift=slow.nodes[fast.name].drift)


def _program(*words: str) -> list[str]:
    return [sys.executable, "-m", "rackwright", *words]
