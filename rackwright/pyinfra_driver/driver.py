"""Drives pyinfra for one shard of nodes, inside a worker process.

How it differs from pyinfra's own driver, and why:
- every host runs freely through its own list; no barrier after each operation, so a slow or dead
  node delays no other (run_ops waits for all hosts after each operation);
- an operation's hash is made unique to its host by `loop_position`: in API mode pyinfra numbers
  operations per host, so hosts with different roles would share names and arguments (#1370);
- an exception of any type on a host is that host's own result;
- all commands and changes of an operation are recorded when it is prepared, while the changes of
  earlier operations are known and those of later ones are not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, cast

import gevent
from gevent.pool import Pool
from pyinfra.api.config import Config
from pyinfra.api.exceptions import ConnectError
from pyinfra.api.host import Host
from pyinfra.api.inventory import Inventory
from pyinfra.api.operations import run_host_op
from pyinfra.api.state import State, StateOperationHostData, StateStage
from pyinfra.context import ctx_config, ctx_host, ctx_state

from rackwright.data import Site
from rackwright.factcache.cache import ClassCache, FactCache
from rackwright.factcache.fetch import Opened
from rackwright.factcache.quick_check import PARALLEL
from rackwright.plan.changes import Change, collect_with, took_to_waiting
from rackwright.plan.node_plan import NodeOutcome, NodePlan, PlannedOperation
from rackwright.pyinfra_driver.connector import RackwrightConnector, groups_of, host_data
from rackwright.pyinfra_driver.connector_state import ConnectorState
from rackwright.pyinfra_driver.failures import what_failed, why
from rackwright.pyinfra_driver.pyinfra_caches import FlatData, install_caches


def _connector_state(host: Host) -> ConnectorState:
    return cast(ConnectorState, host.connector)


class Reporter(Protocol):
    """Receives events as they happen; `error` is None on success."""

    def planned(self, plan: NodePlan) -> None:
        """A node was compared with its declaration."""

    def started(self, node: str, role: str, name: str) -> None:
        """An operation begins."""

    def finished(self, node: str, role: str, name: str, changed: bool, error: str | None) -> None:
        """An operation ended."""

    def applied(self, outcome: NodeOutcome) -> None:
        """A node is finished."""


class _State(State):
    """A State that calls its driver right after each operation was prepared."""

    prepared: Callable[[Host, str, StateOperationHostData], None] | None = None

    def set_op_data_for_host(self, host: Host, op_hash: str, op_data: StateOperationHostData) -> None:
        super().set_op_data_for_host(host, op_hash, op_data)
        if self.prepared is not None:
            self.prepared(host, op_hash, op_data)


def _script(path: Path) -> Callable[[], None]:
    """A deploy that is run by path, compiled once."""
    code = compile(path.read_text(), str(path), "exec")
    return lambda: exec(code, {"__file__": str(path), "__name__": "deploy"})  # noqa: S102 - as pyinfra


class Driver:
    """Plans and applies one deploy, a script or a function, on a set of nodes."""

    def __init__(
        self,
        sites: Iterable[Site],
        deploy: Path | Callable[[], object],
        reporter: Reporter,
        connector: type[Any] = RackwrightConnector,
        cache: ClassCache | FactCache | None = None,
        parallel: int = PARALLEL,
        opened: Mapping[str, Opened] | None = None,
    ) -> None:
        names = {site.node.name: site for site in sites}
        self._parallel = parallel
        self._state = self._make_state(names, connector)
        self._deploy = _script(deploy) if isinstance(deploy, Path) else deploy
        self._cache = cache
        self._opened = opened or {}
        self._reporter = reporter
        self._changes: dict[str, list[Change]] = {name: [] for name in names}
        self._plans: dict[str, list[PlannedOperation]] = {name: [] for name in names}
        self._reboots: dict[str, list[Change]] = {name: [] for name in names}
        self._after_reboot: dict[str, list[str]] = {name: [] for name in names}
        self.stopping = False
        collect_with(self._collect)

    def _collect(self, host: Host, change: Change) -> None:
        (self._reboots if change.kind == "reboot" else self._changes)[host.name].append(change)

    def _make_state(self, sites: dict[str, Site], connector: type[Any]) -> _State:
        groups: dict[str, tuple[list[str], dict[str, Any]]] = {}
        for name, site in sites.items():
            for group in groups_of(site.node):
                groups.setdefault(group, ([], {}))[0].append(name)
        names = [(name, host_data(site)) for name, site in sites.items()]
        install_caches()
        inventory = Inventory((names, {}), **groups)  # type: ignore[no-untyped-call]
        for host in inventory:
            host.connector_cls = connector
            host.data = FlatData(host, host.host_data)
        state = _State()
        state.init(inventory, Config(PARALLEL=self._parallel))  # type: ignore[no-untyped-call]
        state.prepared = self._on_prepared
        return state

    # Plan

    def plan(self) -> None:
        """Connect to every node and compare it with its declaration."""
        self._state.current_stage = StateStage.Prepare
        pool = Pool(self._parallel)
        with ctx_state.use(self._state):
            for index, host in enumerate(self._state.inventory):
                pool.spawn(self._plan_host, host, index)
            pool.join()
        if self._cache is not None:
            self._cache.save()

    def _plan_host(self, host: Host, index: int) -> None:
        host.loop_position = [index]
        if host.name in self._opened:
            _connector_state(host).adopt(self._opened[host.name])
        try:
            host.connect(raise_exceptions=True)
        except ConnectError as refused:
            self._reporter.planned(NodePlan(host.name, error=str(refused), unreachable=True))
            return
        self._state.activate_host(host)
        error = None
        try:
            self._evaluate(host)
            if host in self._state.failed_hosts:
                error = what_failed(_connector_state(host)) or "a fact could not be read"
        except Exception as problem:  # noqa: BLE001 - affects only this host
            error = why(_connector_state(host), problem, failed=host in self._state.failed_hosts)
        operations = () if error else tuple(self._plans[host.name])
        if error is None:
            self._store(host, in_sync=not operations and not self._reboots[host.name])
        self._reporter.planned(self._node_plan(host, operations, error))

    def _evaluate(self, host: Host) -> None:
        answers = _connector_state(host).answers
        if answers is not None:
            answers.asker = lambda: self._asker(host)
        with ctx_config.use(self._state.config.copy()), ctx_host.use(host):
            self._deploy()

    def _store(self, host: Host, *, in_sync: bool) -> None:
        answers = _connector_state(host).answers
        if answers is not None and self._cache is not None:
            digest = answers.digest if in_sync and answers.whole else None
            self._cache.store(host.name, answers.in_order, digest, answers.askers)

    def _node_plan(self, host: Host, operations: tuple[PlannedOperation, ...], error: str | None) -> NodePlan:
        connector = _connector_state(host)
        batches = connector.answers.executions if connector.answers else 0
        return NodePlan(
            host.name,
            operations,
            evaluated=len(host.op_hash_order),
            error=error,
            unreachable=connector.lost is not None,
            executions=connector.executions + batches,
            note=connector.answers.note if connector.answers else None,
            reboot=() if error else tuple(self._reboots[host.name]),
            after_reboot=() if error else tuple(self._after_reboot[host.name]),
        )

    def _on_prepared(self, host: Host, op_hash: str, data: StateOperationHostData) -> None:
        self._changes[host.name] = []
        waits = took_to_waiting(host)
        if self._state.is_executing:
            return
        if waits:
            self._after_reboot[host.name].append(": ".join(filter(None, self._title(host, op_hash))))
        if not data.operation_meta.will_change:
            return
        answers = _connector_state(host).answers
        if answers is not None:
            answers.mark_change()
        commands = tuple(str(command) for command in data.command_generator())
        operation = self._described(host, op_hash, commands)
        self._plans[host.name].append(operation)

    def _described(self, host: Host, op_hash: str, commands: tuple[str, ...]) -> PlannedOperation:
        role, name = self._title(host, op_hash)
        changes, self._changes[host.name] = tuple(self._changes[host.name]), []
        return PlannedOperation(role, name, changes, commands)

    def _title(self, host: Host, op_hash: str) -> tuple[str, str]:
        """(role, name) of an operation; the role is the outermost deploy's name."""
        name = next(iter(self._state.get_op_meta(op_hash).names))
        role, _, title = name.partition(" | ")
        return (role, title) if title else ("", name)

    def _asker(self, host: Host) -> str:
        """The operation a fact is being read for; between two, the deploy."""
        if host.current_op_hash is None:
            return host.current_deploy_name or ""
        return next(iter(self._state.get_op_meta(host.current_op_hash).names))

    # Apply

    def apply(self, nodes: Iterable[str], erase: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """Run the prepared operations on these nodes, all at once; `erase`: see Site.erasable, by node."""
        for name, disks in (erase or {}).items():
            own = self._state.inventory.get_host(name).host_data
            own["rackwright"] = replace(own["rackwright"], erasable=dict(disks))
        self._state.is_executing = True
        self._state.current_stage = StateStage.Execute
        pool = Pool(self._parallel)
        with ctx_state.use(self._state):
            for name in nodes:
                pool.spawn(self._apply_host, self._state.inventory.get_host(name))
            pool.join()

    def _apply_host(self, host: Host) -> None:
        began = time.monotonic()
        applied: list[PlannedOperation] = []
        error = None
        self._reboots[
            host.name
        ] = []  # as of now: an operation may bring what a reboot was due for, or need one
        answers = _connector_state(host).answers
        if answers is not None:
            answers.begin_apply()
        with ctx_config.use(self._state.config.copy()), ctx_host.use(host):
            for op_hash in list(host.op_hash_order):
                error = "stopped before it was finished" if self.stopping else None
                if error is None:
                    error = self._apply_operation(host, op_hash, applied)
                if error is not None:
                    break
        lost = _connector_state(host).lost is not None
        seconds = time.monotonic() - began
        reboot = tuple(self._reboots[host.name])
        self._reporter.applied(
            NodeOutcome(host.name, error is None, tuple(applied), error, lost, seconds, reboot)
        )

    def _apply_operation(self, host: Host, op_hash: str, applied: list[PlannedOperation]) -> str | None:
        """Run one operation; None, or the error."""
        role, name = self._title(host, op_hash)
        self._changes[host.name] = []
        self._reporter.started(host.name, role, name)
        _connector_state(host).last = _connector_state(host).failure = None
        error = None
        changed = False
        try:
            succeeded = run_host_op(self._state, host, op_hash)
            if not succeeded or host in self._state.failed_hosts:  # the latter: a fact could not be read
                error = what_failed(_connector_state(host)) or "it failed"
            else:
                changed = self._state.get_op_data_for_host(host, op_hash).operation_meta.did_change()
        except Exception as problem:  # noqa: BLE001 - affects only this host
            error = why(_connector_state(host), problem, failed=host in self._state.failed_hosts)
        self._reporter.finished(host.name, role, name, changed, error)
        if error is not None:
            return f"{role}: {name}: {error}" if role else f"{name}: {error}"
        if changed:
            applied.append(self._described(host, op_hash, ()))
        return None

    def close(self) -> None:
        """Close every connection."""
        for host in self._state.inventory:
            host.connector.disconnect()
        gevent.sleep(0)
