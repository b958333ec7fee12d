"""Switches and blocks of the declared cluster in Slurm's terms. Pure functions."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.model.sku import NvSwitch
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.placement import natural, release, workers

BLOCK_SINCE = (24, 5)


@dataclass(frozen=True)
class SwitchGroup:
    """A leaf switch or a block, and its workers as a hostlist."""

    name: str
    nodes: str
    size: int


def topology_kind(cluster: Cluster, options: SlurmOptions) -> str:
    """flat, tree or block, with `auto` resolved."""
    if options.topology != "auto":
        return options.topology
    if _one_nvlink_domain_per_rack(cluster) and release(cluster, options) >= BLOCK_SINCE:
        return "block"
    leaves = {node.switch for node in workers(cluster)}
    return "tree" if len(leaves) > 1 and None not in leaves else "flat"


def _one_nvlink_domain_per_rack(cluster: Cluster) -> bool:
    """Whether every worker shares NVLink with the others of its rack, and with no further node.

    A job that spans two such racks loses NVLink between them, which a tree of switches cannot say
    and a block can (slurm.schedmd.com/topology.html, topology/block, read 2026-11-23).
    """
    nodes = workers(cluster)
    sizes = Counter(node.rack for node in nodes)
    return bool(nodes) and all(
        node.rack is not None and sizes[node.rack] <= _nodes_of_domain(node) for node in nodes
    )


def _nodes_of_domain(node: Node) -> int:
    """Nodes whose GPUs are one NVLink domain; 0 where the domain ends with the node or is not known."""
    gpus = node.sku.gpus
    if gpus is None or gpus.nvswitch is not NvSwitch.RACK or gpus.nvlink_domain is None:
        return 0
    return gpus.nvlink_domain // gpus.count


def groups(cluster: Cluster, kind: str) -> tuple[SwitchGroup, ...]:
    """Leaf switches of a tree or blocks (racks). A rack is never used as a switch."""
    members: dict[str, list[str]] = defaultdict(list)
    for node in workers(cluster):
        name = place(node, kind)
        if name is not None:
            members[re.sub(r"[^A-Za-z0-9_.-]", "-", name)].append(node.name)
    ordered = sorted(members.items(), key=lambda item: natural(item[0]))
    return tuple(SwitchGroup(name, fold(names), len(names)) for name, names in ordered)


def place(node: Node, kind: str) -> str | None:
    """The rack in a block topology, the declared switch in a tree."""
    return node.rack if kind == "block" else node.switch


def block_sizes(cluster: Cluster, options: SlurmOptions) -> tuple[int, ...]:
    """Declared, or the size of the smallest block: no block may have fewer nodes than the first."""
    return options.block_sizes or (min(group.size for group in groups(cluster, "block")),)
