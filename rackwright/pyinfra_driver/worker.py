"""One worker process: plans, and on request applies, one shard of the cluster.

Started by rackwright.engine.workers as `python -m rackwright.pyinfra_driver.worker`. It reads one job
(a line of JSON) from stdin, then orders, and writes events (lines of JSON) to stdout:

    job     {"file", "sha256", "nodes": {name: host class}, "roles": [...] | null, "deploy",
             "key", "full", "parallel", "plans_only", "renewed": [...]}
    order   {"apply": [nodes], "erase": {node: {serial: content}}} | {"stop": true} | end of input
    event   {"event": "planned", "plan": {...}}             per node
            {"event": "started", "node", "role", "name"}    per operation
            {"event": "finished", "node", "role", "name", "changed", "error"}
            {"event": "applied", "outcome": {...}}          per node
            {"event": "ready"}                              after each phase

A separate process per run and shard: pyinfra keeps file digests and templates in process-wide
caches, one gevent loop uses one core, and a crash takes one shard with it, not the run.
"""

import gevent.events
from gevent import monkey

# gevent looks through all installed packages for plugins each time it patches a module: a third of the start
gevent.events.notify_and_call_entry_points = gevent.events.notify
monkey.patch_all()  # before anything else loads socket or threading

import json
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import gevent
from gevent.fileobject import FileObject
from gevent.pool import Pool

from rackwright.boundary import printable_block
from rackwright.clusterfile.load import load_cluster
from rackwright.factcache.cache import FactCache
from rackwright.factcache.fetch import Opened, open_node
from rackwright.factcache.quick_check import PARALLEL
from rackwright.plan.node_plan import NodeOutcome, NodePlan
from rackwright.state_folder import state_folder

if TYPE_CHECKING:
    from rackwright.pyinfra_driver.driver import Driver


class _Events:
    """Writes events, one line each; stdout itself is kept for them alone."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.plans = 0
        """Nodes whose plan was reported."""

    def send(self, event: str, **data: Any) -> None:  # noqa: ANN401 - JSON data
        self._stream.write(json.dumps({"event": event, **data}) + "\n")
        self._stream.flush()

    def planned(self, plan: NodePlan) -> None:
        self.plans += 1
        self.send("planned", plan=plan.to_json())

    def started(self, node: str, role: str, name: str) -> None:
        self.send("started", node=node, role=role, name=name)

    def finished(self, node: str, role: str, name: str, changed: bool, error: str | None) -> None:
        shown = printable_block(error, 20_000) if error is not None else None
        self.send("finished", node=node, role=role, name=name, changed=changed, error=shown)

    def applied(self, outcome: NodeOutcome) -> None:
        data = {
            "node": outcome.node,
            "ok": outcome.ok,
            "error": outcome.error,
            "unreachable": outcome.unreachable,
            "seconds": outcome.seconds,
            "reboot": [change.to_json() for change in outcome.reboot],
            "operations": [operation.to_json() for operation in outcome.operations],
        }
        self.send("applied", outcome=data)


class _Shard:
    """The nodes of one job, from the first connection to the last outcome."""

    def __init__(self, job: dict[str, Any], events: _Events) -> None:
        self._job = job
        self._events = events
        self._cluster = load_cluster(Path(job["file"]))
        if self._cluster.sha256 != job["sha256"]:
            raise SystemExit(f"{job['file']} changed while the run was starting")
        self._parallel: int = job["parallel"] or PARALLEL
        self._driver: Driver | None = None

    def plan(self) -> None:
        """Quick check of every node; evaluate those whose answers have changed."""
        cache = self._open_cache()
        opened: dict[str, Opened] = {}

        def check(name: str) -> None:
            try:
                found = open_node(self._cluster, self._cluster.by_name[name], cache)
            except Exception as problem:  # affects only this node
                logging.getLogger(__name__).warning("unexpected", exc_info=problem)
                found = NodePlan(name, error=f"planning failed: {type(problem).__name__}: {problem}")
            if isinstance(found, NodePlan):
                self._events.planned(found)
            else:
                opened[name] = found

        pool = Pool(self._parallel)
        pool.map(check, self._job["nodes"])
        if opened:
            self._evaluate(opened, cache)

    @property
    def owes_plans(self) -> bool:
        """Whether plans are still to be reported; once all are, the cache is still to be written."""
        return self._events.plans < len(self._job["nodes"])

    def apply(self, nodes: list[str], erase: dict[str, dict[str, str]]) -> None:
        """Carry out the plan of these nodes; of these disks the content may be destroyed."""
        if self._driver is not None:
            self._driver.apply(nodes, erase)

    def close(self) -> None:
        """Finish the current operation and close every connection."""
        if self._driver is not None:
            self._driver.close()

    def stop(self) -> None:
        """Begin no further operation."""
        if self._driver is not None:
            self._driver.stopping = True

    def _open_cache(self) -> FactCache | None:
        if self._job["roles"] is not None:
            return None  # a run of some roles asks too little to be cached
        facts = state_folder(self._cluster.name) / "facts"
        cache = FactCache(facts, self._job["nodes"], self._job["key"])
        if self._job["full"]:
            cache.ignore_digests()
        return cache

    def _evaluate(self, opened: dict[str, Opened], cache: FactCache | None) -> None:
        # both load pyinfra: half a second of CPU that nodes in sync do not need
        from rackwright.data import Site
        from rackwright.pyinfra_driver.driver import Driver

        roles = frozenset(self._job["roles"]) if self._job["roles"] is not None else None
        names = (name for name in self._job["nodes"] if name in opened)
        self._driver = Driver(
            [
                Site(
                    self._cluster,
                    self._cluster.by_name[name],
                    roles,
                    plans_only=self._job["plans_only"],
                    renewed=frozenset(self._job["renewed"]),
                )
                for name in names
            ],
            Path(self._job["deploy"]),
            self._events,
            cache=cache,
            parallel=self._parallel,
            opened=opened,
        )
        self._driver.plan()


def main() -> None:
    """Run one job."""
    events = _Events(os.fdopen(os.dup(sys.stdout.fileno()), "w"))
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a stray print must not break the protocol
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which sends "stop"
    logging.basicConfig(level=logging.WARNING)
    orders = FileObject(sys.stdin.fileno(), "rb")
    shard = _Shard(json.loads(orders.readline()), events)
    planning, order = gevent.spawn(shard.plan), gevent.spawn(_next, orders)
    gevent.wait([planning, order], count=1)
    if not planning.ready() and order.get() is None and shard.owes_plans:
        return  # a plan changes nothing: do not wait for a node that hangs
    planning.get()
    events.send("ready")
    _carry_out(shard, order.get(), orders, events)


def _next(orders: FileObject) -> dict[str, Any] | None:
    """The next order; None to exit, also when the parent is gone."""
    order: dict[str, Any] = json.loads(orders.readline() or "{}")
    return order if "apply" in order else None


def _carry_out(shard: _Shard, order: dict[str, Any] | None, orders: FileObject, events: _Events) -> None:
    """Carry out orders until the last one, then finish the current operations."""
    phase = None
    try:
        while order is not None:
            phase = gevent.spawn(shard.apply, order["apply"], order.get("erase", {}))
            phase.link(lambda _: events.send("ready"))
            order = _next(orders)
    finally:
        shard.stop()
        if phase is not None:
            phase.join()
        shard.close()


if __name__ == "__main__":
    main()
