"""Scheduling, billing and power settings of slurm.conf, derived from the cluster. Pure functions."""

from __future__ import annotations

import math

from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import expand, fold
from rackwright.model.types import NodeRole
from rackwright.roles.slurm import layout, placement
from rackwright.roles.slurm.entities import Partition
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.power import NodeState
from rackwright.workload.slurm.gres import gres

# SchedulerParameters of slurm.conf(5), 22.05 to 26.05: the window should be as long as the longest job, and the
# resolution should grow with it. 30 days is the most that sched/backfill takes (MAX_BACKFILL_WINDOW).
_DAY_MINUTES = 1440
_DEFAULT_WINDOW, _LONGEST_WINDOW = _DAY_MINUTES, 30 * _DAY_MINUTES
_WINDOW_WITHOUT_LIMIT = 7 * _DAY_MINUTES
_LONGEST_RESOLUTION = 600
STATES_SINCE = (23, 2)
"""SuspendExcStates (slurm.conf(5) of 23.02)."""
_STAY_ON: tuple[NodeState, ...] = ("DOWN", "DRAIN", "FAIL", "INVALID_REG", "MAINTENANCE", "NOT_RESPONDING")


def scheduler_parameters(options: SlurmOptions) -> tuple[str, ...]:
    """Declared, and a backfill window in which the longest job fits unless one is declared."""
    declared = options.scheduler_parameters
    keys = {word.partition("=")[0] for word in declared}
    window = _backfill_window(options)
    if "bf_window" in keys or window <= _DEFAULT_WINDOW:
        return declared
    more = [f"bf_window={window}"]
    if "bf_resolution" not in keys:
        # As many steps as Slurm's own 1440 of 60 s, while a step is no longer than a short job.
        more.append(f"bf_resolution={min(_LONGEST_RESOLUTION, math.ceil(window / _DEFAULT_WINDOW) * 60)}")
    return (*declared, *more)


def _backfill_window(options: SlurmOptions) -> int:
    """Minutes: the longest time limit. Jobs without one are planned for a week."""
    longest = (minutes(partition.max_time) for partition in options.partitions.values())
    return min(_LONGEST_WINDOW, max(_WINDOW_WITHOUT_LIMIT if one is None else one for one in longest))


def minutes(duration: str) -> int | None:
    """A time limit in whole minutes, rounded up; None for UNLIMITED."""
    if duration == "UNLIMITED":
        return None
    days, _, clock = duration.rpartition("-")
    hours, mins, seconds = (int(part) for part in clock.split(":"))
    return (int(days or 0) * 24 + hours) * 60 + mins + math.ceil(seconds / 60)


def bills_largest(options: SlurmOptions) -> bool:
    """Whether jobs are billed their largest share of a node instead of the sum of all."""
    if options.billing.by is not None:
        return options.billing.by == "largest"
    return not any(partition.tres_billing_weights for partition in options.partitions.values())


def priority_flags(cluster: Cluster, options: SlurmOptions) -> tuple[str, ...]:
    """MAX_TRES where weights are in use that mean it (slurm.schedmd.com/tres.html, read 2026-11-23)."""
    weighted = (
        bool(one.tres_billing_weights) or any(gres(node) for node in layout.partition_nodes(cluster, one))
        for one in options.partitions.values()
    )
    return ("MAX_TRES",) if bills_largest(options) and any(weighted) else ()


def billing_weights(cluster: Cluster, options: SlurmOptions, partition: Partition) -> dict[str, float]:
    """TRESBillingWeights: declared, or by GPU where the partition has some; memory per GiB.

    Without weights Slurm bills CPUs alone: a job with 8 GPUs and 8 CPUs is billed a 28th of its DGX.
    """
    if partition.tres_billing_weights:
        return partition.tres_billing_weights
    nodes = layout.partition_nodes(cluster, partition)
    with_gpus = [node for node in nodes if gres(node)]
    if not with_gpus:
        return {}
    unit = options.billing.gpu
    per_gpu = _down(min(_node_units(node, unit) / layout.gpu_count(node) for node in with_gpus))
    if len(with_gpus) < len(nodes) or not bills_largest(options):
        return {"CPU": 1.0, "GRES/gpu": per_gpu}
    return {
        "CPU": _down(min(_node_units(node, unit) / layout.job_cpus(node, options) for node in nodes)),
        "Mem": _down(min(_node_units(node, unit) * 1024 / layout.usable(node, options) for node in nodes)),
        "GRES/gpu": per_gpu,
    }


def _node_units(node: Node, unit: int) -> int:
    """What a whole node is billed: its GPUs, partitioned with MIG or not."""
    gpus = layout.hardware(node).gpus
    return unit * (gpus.count if gpus else 0)


def _down(weight: float) -> float:
    """Never more than its share: a whole node must not be billed above its GPUs."""
    return math.floor(weight * 10_000) / 10_000


def stays_on(cluster: Cluster, options: SlurmOptions) -> str | None:
    """SuspendExcNodes: declared, and every worker that serves the others as well."""
    declared = {name for text in options.power_saving.exclude_nodes for name in expand(text)}
    kept = [
        node.name
        for node in placement.workers(cluster)
        if node.name in declared or node.holds(NodeRole.HEAD, NodeRole.LOGIN, NodeRole.STORAGE)
    ]
    return fold(kept) if kept else None


def excluded_states(cluster: Cluster, options: SlurmOptions) -> tuple[NodeState, ...]:
    """SuspendExcStates; empty where the release lacks the setting."""
    if placement.release(cluster, options) < STATES_SINCE:
        return ()
    declared = options.power_saving.suspend_exc_states
    return _STAY_ON if declared is None else declared
