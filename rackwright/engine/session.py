"""A run seen from the command line: worker processes take orders and report events.

    with Session(cluster, limit="gpu[001-032]") as session:
        plan = session.plan()
        outcomes = session.apply({"gpu001"})

The connections of plan are those of apply. This process never loads pyinfra.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from rackwright.engine.supplied_secrets import refuse_missing
from rackwright.engine.workers import (
    EVALUATED_PER_WORKER,
    IN_SYNC_PER_WORKER,
    Event,
    Worker,
    Workers,
    outcome_of,
    split,
)
from rackwright.factcache.cache import FactCache, version_key
from rackwright.factcache.host_classes import host_class
from rackwright.factcache.quick_check import QUICK_CHECK_MAX, quick_check
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.model.selection import pick
from rackwright.plan.node_plan import NodeOutcome, NodePlan, PlanResult
from rackwright.shipped import deploy_of
from rackwright.state_folder import state_folder

Watcher = Callable[[dict[str, Any]], None]


class Session:
    """The worker processes of one run. Use as a context manager."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        limit: str | None = None,
        roles: frozenset[str] | None = None,
        deploy: Path | None = None,
        watch: Watcher | None = None,
        full: bool = False,
        parallel: int | None = None,
        plans_only: bool = False,
        renewed: frozenset[str] = frozenset(),
        code: str | None = None,
    ) -> None:
        """`plans_only`: secrets may be missing; `renewed`: secrets that are planned with a new value.

        `deploy`: None is the site's. `code`: what the plan names as its code instead of the key.
        """
        self._cluster = cluster
        self._nodes = pick(cluster, limit)
        self._roles = sorted(roles) if roles is not None else None
        self._watchers = [watch] if watch is not None else []
        self._deploy = deploy or deploy_of(cluster.path)
        self._full = full
        self._parallel = parallel
        self._plans_only = plans_only
        self._renewed = renewed
        self._code = code
        self.erasable: Mapping[str, Mapping[str, str]] = {}
        """By node, disks whose serial was typed, and their content as the plan showed it."""
        self.interrupted = False
        """Ctrl-C was pressed: running operations were finished, no other was begun."""
        self.stopped: str | None = None
        """Why the run had to stop, as after Ctrl-C."""
        self._again: Session | None = None

    @contextmanager
    def again(self, nodes: Iterable[str]) -> Iterator[Session]:
        """A session like this one for some of its nodes, e.g. after a reboot: with new connections.

        What stops or interrupts one of the two does so to both.
        """
        session = Session(
            self._cluster,
            limit=fold(nodes),
            roles=frozenset(self._roles) if self._roles is not None else None,
            deploy=self._deploy,
            full=self._full,
            parallel=self._parallel,
        )
        session._watchers = self._watchers
        with session:
            self._again = session
            if self.stopped is not None:
                session.stop(self.stopped)
            try:
                yield session
            finally:
                self._again = None
                self.interrupted = self.interrupted or session.interrupted

    def __enter__(self) -> Self:
        refuse_missing(self._cluster, self._nodes, self._roles)
        self._key = version_key(self._cluster, self._deploy)
        job = {
            "file": str(self._cluster.path),
            "sha256": self._cluster.sha256,
            "roles": self._roles,
            "deploy": str(self._deploy),
            "key": self._key,
            "full": self._full,
            "parallel": self._parallel,
            "plans_only": self._plans_only,
            "renewed": sorted(self._renewed),
        }
        self._workers = Workers(self._cluster.name, job)
        self._cache = self._cache_of(self._nodes)
        in_sync = self._in_sync_before()
        self._quickly_checked = in_sync if len(in_sync) <= QUICK_CHECK_MAX else ()
        self._changed: set[str] = set()
        """Nodes of the quick check that have changed."""
        quickly_checked = {node.name for node in self._quickly_checked}
        rest = [node for node in self._nodes if node.name not in quickly_checked]
        self._start(rest, IN_SYNC_PER_WORKER if len(in_sync) > QUICK_CHECK_MAX else EVALUATED_PER_WORKER)
        return self

    def __exit__(self, *exception: object) -> None:
        self._workers.stop()

    def add_watcher(self, watcher: Watcher) -> None:
        """Call it with every event from now on."""
        self._watchers.append(watcher)

    def plan(self) -> PlanResult:
        """Compare every node with its declaration."""
        plans = self._quick_check()
        for worker, event in self._workers.events():
            if event is None:
                self._take_over(worker, lambda node, error: plans.update({node: NodePlan(node, error=error)}))
            elif event["event"] == "planned":
                plan = NodePlan.from_json(event["plan"])
                worker.waiting_for.discard(plan.node)
                self._planned(plans, plan)
        self._warn_of_full_disk()
        return PlanResult(
            self._cluster.name,
            str(self._cluster.path),
            self._cluster.sha256,
            {node.name: plans[node.name] for node in self._nodes},
            self._code or self._key,
            tuple(self._roles) if self._roles is not None else None,
        )

    def apply(self, nodes: Iterable[str]) -> dict[str, NodeOutcome]:
        """Execute what was planned on these nodes, all at once; outcomes by node."""
        outcomes: dict[str, NodeOutcome] = {}
        due: dict[int, list[str]] = {}
        for name in nodes:
            worker = self._workers.by_node[name]
            if worker.ended:
                outcomes[name] = NodeOutcome(name, False, error=worker.why_it_ended())
            else:
                worker.waiting_for.add(name)
                due.setdefault(self._workers.all.index(worker), []).append(name)
        for index, mine in due.items():
            self._order(self._workers.all[index], mine)
        while True:
            try:
                for worker, event in self._workers.events():
                    self._note(worker, event, outcomes)
                return outcomes
            except KeyboardInterrupt:  # once: finish the current operation; twice: exit now
                if self.interrupted:
                    raise
                self.interrupted = True
                self._notify({"event": "stopping"})
                for worker in self._workers.all:
                    worker.order(stop=True)

    def stop(self, why: str) -> None:
        """Begin no further operation, as after Ctrl-C; may be called by another thread."""
        self.stopped = why
        if (again := self._again) is not None:
            again.stop(why)
        for worker in list(self._workers.all):
            worker.order(stop=True)

    def _order(self, worker: Worker, nodes: list[str]) -> None:
        worker.order(
            apply=nodes, erase={name: dict(self.erasable[name]) for name in nodes if name in self.erasable}
        )

    def _cache_of(self, nodes: Iterable[Node]) -> FactCache | None:
        if self._roles is not None or self._full:
            return None  # such a run ignores cached results
        classes = {node.name: host_class(node) for node in nodes}
        return FactCache(state_folder(self._cluster.name) / "facts", classes, self._key)

    def _in_sync_before(self) -> tuple[Node, ...]:
        """The nodes for which a quick check is likely to be enough."""
        cache = self._cache
        if cache is None:
            return ()
        return tuple(node for node in self._nodes if cache.get(node.name).digest)

    def _start(self, nodes: Sequence[Node], per_worker: int) -> None:
        if nodes:
            for shard in split(nodes, per_worker):
                self._workers.start(shard)

    def _quick_check(self) -> dict[str, NodePlan]:
        """Check the nodes that were in sync; those that have changed get a worker."""
        plans: dict[str, NodePlan] = {}
        if self._cache is not None and self._quickly_checked:
            for plan in quick_check(self._cluster, self._quickly_checked, self._cache, self._parallel):
                if plan is not None:
                    self._planned(plans, plan)
        changed = [node for node in self._quickly_checked if node.name not in plans]
        self._changed = {node.name for node in changed}
        self._start(changed, EVALUATED_PER_WORKER)
        return plans

    def _planned(self, plans: dict[str, NodePlan], plan: NodePlan) -> None:
        if plan.node in self._changed:  # the quick check was an execution too
            plan = replace(plan, executions=plan.executions + 1)
        plans[plan.node] = plan
        self._notify({"event": "planned", "plan": plan.to_json()})

    def _warn_of_full_disk(self) -> None:
        """Caches that cannot be written end no run, but every later one is slower."""
        folder = state_folder(self._cluster.name)
        if os.statvfs(folder).f_bavail == 0:
            text = f"the disk of {folder} is full: answers of the nodes are not cached, runs are slower"
            self._notify({"event": "notice", "text": text})

    def _note(self, worker: Worker, event: Event | None, outcomes: dict[str, NodeOutcome]) -> None:
        if event is None:
            successor = self._take_over(
                worker, lambda node, error: outcomes.update({node: NodeOutcome(node, False, error=error)})
            )
            if successor is not None:
                successor.apply_when_ready = True
            return
        if event["event"] == "applied":
            outcome = outcome_of(event["outcome"])
            outcomes[outcome.node] = outcome
            worker.waiting_for.discard(outcome.node)
        elif event["event"] == "ready" and worker.apply_when_ready:
            worker.apply_when_ready = False
            self._order(worker, sorted(worker.waiting_for))
        self._notify(event)

    def _take_over(self, worker: Worker, lose: Callable[[str, str], object]) -> Worker | None:
        """A worker died: its nodes get one more process; if that dies too, they fail with its log."""
        left = {name: known for name, known in worker.nodes.items() if name in worker.waiting_for}
        if not worker.retry and not self.interrupted and self.stopped is None:
            return self._workers.start(left, retry=True)
        for name in left:
            lose(name, worker.why_it_ended())
        return None

    def _notify(self, event: Event) -> None:
        for watcher in self._watchers:
            watcher(event)
