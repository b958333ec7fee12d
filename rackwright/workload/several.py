"""The workload managers of a cluster whose nodes have different ones, as one: each node's own is asked about it."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import ClassVar

from rackwright.errors import RackwrightError, WorkloadError
from rackwright.model.ranges import fold
from rackwright.workload.protocol import Job, JobStep, JobTrace, Manager, OneManager, Output
from rackwright.workload.states import NodeState


class Several:
    """See rackwright.workload.protocol.Manager. The answers of a manager about nodes that are not its own are left out."""

    name: ClassVar[str] = "the workload manager"
    agent: ClassVar[str] = ""
    """Each node has its manager's: `of(node).agent`."""

    def __init__(self, by_node: Mapping[str, OneManager]) -> None:
        """`by_node`: the manager of each node that has one."""
        self._by_node = dict(by_node)
        self._managers = list(dict.fromkeys(by_node.values()))

    def of(self, node: str) -> Manager:
        """The manager of a node; WorkloadError for one that has none."""
        found = self._by_node.get(node)
        if found is None:
            raise WorkloadError(f"No workload manager is declared on {node}.")
        return found

    def resume_command(self, node: str) -> str:
        """Of the node's manager."""
        return self.of(node).resume_command(node)

    def version(self) -> str:
        """Of each."""
        return ", ".join(f"{one.name} {one.version()}" for one in self._managers)

    def states(self) -> dict[str, NodeState]:
        """Each manager's own nodes, and those that no role declares a manager for."""
        found: dict[str, NodeState] = {}
        for manager in self._managers:
            for name, state in manager.states().items():
                if self._by_node.get(name, manager) is manager:
                    found.setdefault(name, state)
        return found

    def state(self, node: str) -> NodeState:
        """From the node's manager."""
        return self.of(node).state(node)

    def jobs(self, node: str) -> tuple[Job, ...]:
        """From the node's manager."""
        return self.of(node).jobs(node)

    def running(self) -> dict[str, tuple[Job, ...]]:
        """From each; a node that has moved may still run jobs of its earlier manager."""
        found: dict[str, tuple[Job, ...]] = {}
        for manager in self._managers:
            for name, jobs in manager.running().items():
                found[name] = (*found.get(name, ()), *jobs)
        return found

    def trace(self, job: str) -> JobTrace:
        """From the first manager that knows the job."""
        problems = []
        for manager in self._managers:
            try:
                return manager.trace(job)
            except WorkloadError as error:
                problems.append(error.message.rstrip("."))
        raise WorkloadError("; ".join(problems) + ".")

    def drain(
        self, nodes: Collection[str], run: str, deadline_seconds: float, *, kill_jobs: bool = False
    ) -> dict[str, str]:
        """In every manager that knows a node: one that has moved is taken out of its earlier manager's service too.

        They wait one after the other, each up to the deadline. A manager that drains in another one does so itself, in its order.
        """
        asked: list[Manager] = []
        refused: dict[str, str] = {}
        try:
            for manager in self._managers:
                left = [node for node in nodes if node not in refused and not self._shared(node, manager)]
                asked.append(manager)
                refused |= manager.drain(left, run, deadline_seconds, kill_jobs=kill_jobs) if left else {}
        except RackwrightError:
            self._give_back(asked, nodes, run)
            raise
        self._give_back(asked, refused, run)
        return refused

    def _give_back(self, managers: Iterable[Manager], nodes: Collection[str], run: str) -> None:
        """What one manager refused is not left drained in another."""
        for manager in managers if nodes else ():
            with contextlib.suppress(
                RackwrightError
            ):  # reported as drained by the run, which an operator can resume
                manager.resume(nodes, run)

    def resume(self, nodes: Iterable[str], run: str) -> list[str]:
        """In the managers that drained them; a node that has moved stays out of service in its earlier manager."""
        of: dict[Manager, list[str]] = {}
        for node in nodes:
            if node in self._by_node:
                of.setdefault(self._by_node[node], []).append(node)
        return [node for manager, names in of.items() for node in manager.resume(names, run)]

    def forget_moved(self, nodes: Iterable[str]) -> None:
        """These nodes are as declared: only their own manager keeps them."""
        for manager in self._managers:
            others = [node for node in nodes if self._by_node.get(node, manager) is not manager]
            if moved := [node for node in others if not self._shared(node, manager)]:
                manager.forget(moved)

    def _shared(self, node: str, manager: OneManager) -> bool:
        """Whether the node's own manager drains it in this other one as well."""
        own = self._by_node.get(node)
        return own is not None and own is not manager and own.drains_in == manager.name

    def drain_by_hand(self, node: str, reason: str) -> None:
        """In the node's manager."""
        self.of(node).drain_by_hand(node, reason)

    def resume_by_hand(self, node: str, reason: str) -> None:
        """In the node's manager."""
        self.of(node).resume_by_hand(node, reason)

    def run(self, step: JobStep) -> Output:
        """With the one manager of its nodes; WorkloadError for a step across managers."""
        found = list(dict.fromkeys(map(self.of, step.nodes)))
        if len(found) != 1:
            parts = [
                f"{fold(node for node in step.nodes if self.of(node) is one)} in {one.name}" for one in found
            ]
            raise WorkloadError(
                f"One job cannot run across workload managers: {', '.join(parts)}.",
                hint="choose nodes of one manager with --nodes",
            )
        return found[0].run(step)

    def cancel(self) -> None:
        """In each."""
        for manager in self._managers:
            manager.cancel()


def parts_of(manager: Manager, nodes: Sequence[str]) -> list[tuple[Manager, list[str]]]:
    """Each manager with those of these nodes that are its own."""
    if not isinstance(manager, Several):
        return [(manager, list(nodes))]
    found: dict[Manager, list[str]] = {}
    for node in nodes:
        found.setdefault(manager.of(node), []).append(node)
    return list(found.items())


def part_for(manager: Manager, node: str) -> Manager:
    """The manager of one node; in a cluster with several, WorkloadError for a node without one."""
    return manager.of(node) if isinstance(manager, Several) else manager


def forget_moved(manager: Manager, nodes: Collection[str]) -> None:
    """Nodes that are as declared: managers that they have left forget them."""
    if isinstance(manager, Several):
        manager.forget_moved(nodes)
