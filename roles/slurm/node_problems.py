"""Mistakes about workers: NodeSets, features and weights, power saving, switches and blocks, IMEX."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackwright.model.cluster import Cluster
from rackwright.model.ranges import RangeMistake, expand, fold
from rackwright.model.sku import NvSwitch
from rackwright.model.types import Platform
from rackwright.roles.slurm import gres_lines, placement, scheduling, topology
from rackwright.roles.slurm.service_problems import nearest_name
from rackwright.roles.slurm.state_problems import Problem

if TYPE_CHECKING:
    from rackwright.roles.slurm.options import SlurmOptions

IMEX_SINCE = (24, 5)


def node_problems(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    """Those that need no release."""
    weighed: dict[str, str] = {}
    for text, settings in options.node_settings.items():
        path = f"node_settings.{text}"
        mistakes = list(unknown_workers(path, text, cluster))
        yield from mistakes
        if mistakes or settings.weight is None:
            continue
        for name in expand(text):
            if name in weighed:
                yield (
                    f"{path}.weight",
                    f"{name} already has a weight by {weighed[name]}.",
                    "give it one weight",
                )
                break
            weighed[name] = text
    for index, text in enumerate(options.power_saving.exclude_nodes):
        yield from unknown_workers(f"power_saving.exclude_nodes[{index}]", text, cluster)
    for index, name in enumerate(options.power_saving.exclude_partitions):
        if name not in options.partitions:
            yield (
                f"power_saving.exclude_partitions[{index}]",
                f"There is no partition {name}.",
                nearest_name(name, options.partitions),
            )


def release_problems(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    """Those that need one."""
    release = placement.release(cluster, options)
    if options.power_saving.suspend_exc_states and release < scheduling.STATES_SINCE:
        yield (
            "power_saving.suspend_exc_states",
            "SuspendExcStates needs Slurm 23.02 or newer.",
            "leave it out, or take newer packages",
        )
    yield from _display(options, cluster)
    yield from _imex(options, cluster, release)
    yield from _topology(options, cluster, release)


def _display(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    """A GPU for screens has a number among /dev/nvidiaN, so that counting from 0 would hand it to jobs."""
    if gres_lines.detection(cluster, options) != "off":
        return
    for node in placement.workers(cluster):
        gpus = node.sku.gpus
        if gpus is not None and gpus.display_pci_id is not None and node.platform is not Platform.CONTAINER:
            yield (
                "gres_autodetect",
                f"{node.name}'s GPU for screens would be assigned to jobs, as one of /dev/nvidia[0-{gpus.count - 1}].",
                "set `gres_autodetect: nvml`",
            )
            return


def _imex(options: SlurmOptions, cluster: Cluster, release: tuple[int, int]) -> Iterator[Problem]:
    if options.switch_type != "nvidia_imex":
        if options.imex_channels is not None:
            yield "imex_channels", "Slurm makes IMEX channels only with `switch_type: nvidia_imex`.", None
        return
    if release < IMEX_SINCE:
        yield "switch_type", "switch/nvidia_imex needs Slurm 24.05 or newer.", "none, or newer packages"
    gpus = [node.sku.gpus for node in placement.workers(cluster)]
    if not any(one is not None and one.nvswitch is NvSwitch.RACK for one in gpus):
        yield (
            "switch_type",
            "No worker shares NVLink with other nodes of its rack, so there are no IMEX channels to make.",
            "`switch_type: none`",
        )


def unknown_workers(path: str, text: str, cluster: Cluster) -> Iterator[Problem]:
    """What is wrong with a NodeSet that has to name workers of this cluster."""
    workers = {node.name for node in placement.workers(cluster)}
    try:
        names = expand(text)
    except RangeMistake as mistake:
        yield path, mistake.message, mistake.hint
        return
    unknown = [name for name in names if name not in cluster.by_name]
    if unknown:
        yield path, f"{fold(unknown)} is not declared under nodes.", nearest_name(unknown[0], workers)
    idle = [name for name in names if name in cluster.by_name and name not in workers]
    if idle:
        yield path, f"{fold(idle)} is not a worker and runs no jobs.", "give it the role `worker`"


def _topology(options: SlurmOptions, cluster: Cluster, release: tuple[int, int]) -> Iterator[Problem]:
    kind = topology.topology_kind(cluster, options)
    if kind == "flat":
        return
    if kind == "block" and release < topology.BLOCK_SINCE:
        yield "topology", "The block topology needs Slurm 24.05 or newer.", "tree, or newer packages"
    lost = [node.name for node in placement.workers(cluster) if topology.place(node, kind) is None]
    if lost:
        what, example = ("rack", "rack: r01") if kind == "block" else ("switch", "switch: leaf1")
        yield (
            "topology",
            f"{fold(lost)} has no declared {what}, which the {kind} topology needs.",
            f"`{example}`",
        )
    yield from _block_sizes(options, cluster) if kind == "block" and not lost else ()


def _block_sizes(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    least = min((group.size for group in topology.groups(cluster, "block")), default=0)
    sizes = options.block_sizes
    if sizes and sizes[0] > least:
        yield "block_sizes[0]", f"The smallest block has {least} nodes, fewer than {sizes[0]}.", None
    for index, (before, after) in enumerate(itertools.pairwise(sizes), 1):
        factor = after // before if before and after % before == 0 else 0
        if factor < 2 or factor & (factor - 1):
            yield (
                f"block_sizes[{index}]",
                f"{after} is not {before} times a power of two.",
                f"e.g. {before * 2} or {before * 4}",
            )
