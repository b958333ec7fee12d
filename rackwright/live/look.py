"""Asks all sources of a cluster at once. What does not answer in time costs its own facts alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from rackwright.drift.declaration import read_declaration
from rackwright.errors import RackwrightError
from rackwright.live.alerts import Alerts, firing
from rackwright.live.drift import ByHand, pushed_drift, stale_after
from rackwright.live.facts import Absent, Fact, Unknown
from rackwright.live.findings import LastDrift, LastHealth, Source
from rackwright.live.node import Live, LiveNode
from rackwright.live.on_nodes import last_health, pulled_drift
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import ChecksNodeHealth
from rackwright.model.monitoring import CollectsMetrics
from rackwright.prometheus.query import run_queries
from rackwright.ssh import Pool, RootShell
from rackwright.ssh.side_by_side import side_by_side
from rackwright.workload.lookup import manager_of, runs_jobs
from rackwright.workload.protocol import Manager
from rackwright.workload.several import parts_of
from rackwright.workload.states import NodeState

SECONDS = 30.0
NODES_AT_ONCE = 64
NOT_ASKED = Absent("not asked")
_GRACE_SECONDS = 1.0
"""A source that asks every node collects the answers once the time is up; this is for doing so."""
T = TypeVar("T")
FactT = TypeVar("FactT")


def look(
    cluster: Cluster,
    *,
    shell: RootShell | None = None,
    sources: Collection[Source] = tuple(Source),
    seconds: float = SECONDS,
) -> Live:
    """What is known of every node, within about `seconds`. Never raises for what a node or a service does.

    + shell: kept connections, for repeated calls; None: new ones, closed at the end
    + sources: those left out are Absent("not asked"). SCHEDULER and ALERTS ask one head, HEALTH asks each node, DRIFT
      asks the checker, or each node in pull mode
    """
    if shell is None:
        with Pool(cluster) as pool:
            return look(cluster, shell=pool, sources=sources, seconds=seconds)
    at, began = time.time(), time.monotonic()
    # the heads' questions have separate threads: a crowd of silent nodes does not delay them
    with side_by_side(len(Source)) as heads, side_by_side(min(NODES_AT_ONCE, len(cluster.nodes))) as nodes:
        asked = _Asked(cluster, shell, seconds, began + seconds, nodes)
        states, health, drift, alerts = (
            heads.submit(asked.states) if Source.SCHEDULER in sources else None,
            heads.submit(asked.health) if Source.HEALTH in sources else None,
            heads.submit(asked.drift) if Source.DRIFT in sources else None,
            heads.submit(asked.alerts) if Source.ALERTS in sources else None,
        )
        scheduler_of, health_of = asked.each(states), asked.each(health)
        drift_of, fires = asked.each(drift), asked.within(alerts)
    alerts_of = fires.of if isinstance(fires, Alerts) else dict.fromkeys(cluster.by_name, fires)
    found = {
        name: LiveNode(name, scheduler_of[name], health_of[name], drift_of[name], alerts_of[name])
        for name in cluster.by_name
    }
    others = fires.others if isinstance(fires, Alerts) else ()
    return Live(cluster.name, at, time.monotonic() - began, found, others)


@dataclass(frozen=True)
class _Asked:
    """One round of questions; each method is one source, and may raise what `within` makes Unknown."""

    cluster: Cluster
    shell: RootShell
    seconds: float
    deadline: float
    """By time.monotonic()."""
    executor: ThreadPoolExecutor
    """For questions to every node."""

    def within(self, future: Future[FactT] | None, grace: float = _GRACE_SECONDS) -> FactT | Unknown | Absent:
        """Its result once it is there, until the deadline and a little longer."""
        if future is None:
            return NOT_ASKED
        try:
            return future.result(timeout=max(0.0, self.deadline + grace - time.monotonic()))
        except TimeoutError:
            return Unknown(f"no answer within {self.seconds:g} s")
        except RackwrightError as error:
            return Unknown(error.message)
        except Exception as problem:  # noqa: BLE001 - what a node or a service makes of a question ends no picture
            return Unknown(f"it could not be asked: {type(problem).__name__}: {problem}")

    def each(self, future: Future[Mapping[str, Fact[T]]] | None) -> Mapping[str, Fact[T]]:
        """The same for a source that answers by node."""
        found = self.within(future)
        return found if isinstance(found, Mapping) else dict.fromkeys(self.cluster.by_name, found)

    def states(self) -> Mapping[str, Fact[NodeState]]:
        manager = manager_of(self.cluster, self.shell)
        if manager is None:
            return dict.fromkeys(self.cluster.by_name, Absent("no workload manager is declared"))
        found: dict[str, Fact[NodeState]] = dict.fromkeys(self.cluster.by_name, Absent("it runs no jobs"))
        workers = [node.name for node in self.cluster.nodes if runs_jobs(node)]
        for part, names in parts_of(manager, workers):
            found |= self._states_in(part, names, alone=part is manager)
        return found

    def _states_in(
        self, manager: Manager, names: Iterable[str], *, alone: bool
    ) -> dict[str, Fact[NodeState]]:
        """Of several managers, one that does not answer costs its own nodes alone."""
        try:
            known = manager.states()
        except RackwrightError as error:
            if alone:
                raise
            return dict.fromkeys(names, Unknown(error.message))
        return {name: known.get(name) or Unknown(f"{manager.name} does not know it") for name in names}

    def health(self) -> Mapping[str, Fact[LastHealth]]:
        checked = [node for node in self.cluster.nodes if node.offers(ChecksNodeHealth) is not None]
        # a node's health check is run by the workload manager or a timer, and by neither where no jobs are
        checked = [node for node in checked if runs_jobs(node)]
        found = self._of_nodes(checked, lambda name: last_health(self.shell, name, self.seconds))
        no_check = Absent("no health check runs on it")
        return {name: found.get(name, no_check) for name in self.cluster.by_name}

    def drift(self) -> Mapping[str, Fact[LastDrift]]:
        declared = read_declaration(self.cluster.path)
        if declared is None or not declared.agreed:
            by_hand = ByHand.read(self.cluster.name)
            return {name: by_hand.of(self.cluster, name) for name in self.cluster.by_name}
        if declared.mode == "push":
            return pushed_drift(self.cluster, declared, self.shell, self.seconds)
        stale = stale_after(declared)
        return self._of_nodes(
            self.cluster.nodes, lambda name: pulled_drift(self.shell, name, stale, self.seconds)
        )

    def alerts(self) -> Alerts:
        if not any(node.offers(CollectsMetrics) is not None for node in self.cluster.nodes):
            return Alerts(dict.fromkeys(self.cluster.by_name, Absent("no Prometheus is declared")))
        return firing(
            self.cluster,
            lambda queries: run_queries(self.cluster, queries, limit_seconds=self.seconds, shell=self.shell),
        )

    def _of_nodes(self, nodes: Collection[Node], ask: Callable[[str], Fact[T]]) -> dict[str, Fact[T]]:
        futures = {node.name: self.executor.submit(ask, node.name) for node in nodes}
        return {name: self.within(future, 0.0) for name, future in futures.items()}
