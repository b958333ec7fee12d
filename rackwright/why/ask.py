"""Queries every source about one node; a source that does not answer only affects its own part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rackwright.bmc.open import Open, opener
from rackwright.boundary import Refused, printable
from rackwright.engine.journal import runs
from rackwright.engine.run import plan
from rackwright.errors import ConnectionFailed, RackwrightError, WorkloadError
from rackwright.health.guard import places
from rackwright.health.records import Unreadable
from rackwright.health.run import health
from rackwright.model.cluster import Cluster, Node
from rackwright.model.platforms import Capability, why_node_lacks
from rackwright.plan.node_plan import NodePlan
from rackwright.ssh import Pool, RootShell
from rackwright.why import parts
from rackwright.why.bmc import bmc_part
from rackwright.why.last import Last, read_last
from rackwright.why.next_step import next_step
from rackwright.why.parts import LINE_MAX_CHARACTERS, Part
from rackwright.workload.lookup import manager_of
from rackwright.workload.several import part_for

SECONDS = 30
Planner = Callable[[Cluster, str], NodePlan]


@dataclass(frozen=True)
class Explanation:
    """The parts in their order, and what to do next."""

    cluster: str
    node: str
    parts: tuple[Part, ...]
    next_step: str

    @property
    def unknown(self) -> bool:
        """Whether something is UNKNOWN."""
        return any(part.unknown or part.unread for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "version": 1,
            "cluster": self.cluster,
            "node": self.node,
            "parts": [part.to_json() for part in self.parts],
            "next_step": self.next_step,
        }


def why(
    cluster: Cluster,
    node: Node,
    file: Path,
    *,
    shell: RootShell | None = None,
    planner: Planner | None = None,
    open_bmc: Open | None = None,
) -> Explanation:
    """Everything that is known about a node. Never raises because of the node, its BMC or the workload manager."""
    if shell is None:
        with Pool(cluster) as pool:
            return why(cluster, node, file, shell=pool, planner=planner, open_bmc=open_bmc)
    scheduler, drain = _scheduler(cluster, node, shell)
    found = health(cluster, limit=node.name, shell=shell).nodes[0]
    last, unread = _last(node, shell) if found.why is None else (None, None)
    differs = _declaration(cluster, node, planner or _plan)
    simulated = "its GPUs are simulated: " if node.simulates_gpus else ""
    checked = parts.health_part(found, last, unread)
    policy = last.policy.clean_passes if last is not None else None
    unreached = bmc_part(node, lambda: open_bmc or opener(cluster)) if found.why is not None else None
    shown = (
        scheduler,
        checked if not simulated else _noted(checked, simulated),
        *([unreached] if unreached is not None else []),
        differs,
        _changes(cluster, node),
        parts.kernel_part(found.document, found.why, _no_kernel(node)),
    )
    step = next_step(str(file), node.name, drain, found, differs.data.get("changes"), policy, unreached)
    return Explanation(
        cluster.name, node.name, tuple(part.shown() for part in shown), printable(step, LINE_MAX_CHARACTERS)
    )


def _noted(part: Part, simulated: str) -> Part:
    """The part with a note about what the lab simulates."""
    note = f"{simulated}the lab invents what follows about them"
    return replace(part, lines=(note, *part.lines), data={**part.data, "simulated": True})


def _no_kernel(node: Node) -> str | None:
    """Why a node has no separate kernel log; one with simulated GPUs has one."""
    return None if node.simulates_gpus else why_node_lacks(node, Capability.KERNEL)


def _scheduler(cluster: Cluster, node: Node, shell: RootShell) -> tuple[Part, parts.Drain | None]:
    manager = manager_of(cluster, shell)
    if manager is None:
        drain = parts.Drain(None, "no workload manager is declared")
        return Part("scheduler", (drain.line,)), drain
    try:
        manager = part_for(manager, node.name)
        state = manager.state(node.name)
        jobs = manager.jobs(node.name) if state.drained and state.busy else ()
    except (ConnectionFailed, WorkloadError) as error:
        return parts.not_known("scheduler", error.message), None
    drain = parts.drain_of(state, node.name, manager)
    return parts.scheduler_part(state, drain, manager, jobs), drain


def _last(node: Node, shell: RootShell) -> tuple[Last | None, str | None]:
    """The last record of the node's health check, if any, or why it cannot be read."""
    try:
        result = shell.run(node.name, f"cat {places.LAST}", timeout=SECONDS)
        if result.exit_status != 0 or not result.stdout.strip():
            return None, None
        return read_last(result.stdout), None
    except ConnectionFailed as error:
        return None, f"the record of its health check was not read: {error.message}"
    except Refused as error:
        return None, f"the record of its health check ({places.LAST}) was rejected: {error}"


def _plan(cluster: Cluster, node: str) -> NodePlan:
    return plan(cluster, limit=node).nodes[node]


def _declaration(cluster: Cluster, node: Node, planner: Planner) -> Part:
    try:
        return parts.plan_part(planner(cluster, node.name))
    except (RackwrightError, KeyError) as error:
        return parts.not_known("declaration", f"the plan failed: {error}")


def _changes(cluster: Cluster, node: Node) -> Part:
    try:
        return parts.changes_part(cluster.name, node.name, runs())
    except (OSError, ValueError, KeyError, TypeError, Unreadable) as error:
        return parts.not_known("changes", f"the journals cannot be read: {error}")
