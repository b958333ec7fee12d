"""Switches and blocks of the declared cluster in Slurm's terms. Pure functions."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import expand, fold
from rackwright.model.sku import NvSwitch
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.placement import natural, release, workers
from rackwright.workload.slurm.output import parse_hostlist

BLOCK_SINCE = (24, 5)


@dataclass(frozen=True)
class SwitchGroup:
    """A leaf switch or a block, and its workers as a hostlist."""

    name: str
    nodes: str
    size: int


@dataclass(frozen=True)
class UpperSwitch:
    """What joins leaves, as one switch: jobs gain nothing from knowing which spine a packet takes."""

    name: str
    switches: tuple[str, ...]
    """Of the layer below."""
    nodes: str
    comment: str = ""
    """What it stands for."""


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
            members[_written(name)].append(node.name)
    ordered = sorted(members.items(), key=lambda item: natural(item[0]))
    return tuple(SwitchGroup(name, fold(names), len(names)) for name, names in ordered)


def upper(cluster: Cluster, leaves: tuple[SwitchGroup, ...]) -> tuple[UpperSwitch, ...]:
    """The layers above the leaves of a tree, the root last: leaves that share spines are joined below a root of all.

    Without declared spines, and where all leaves share some, that is the root alone.
    """
    if len(leaves) < 2:
        return ()
    taken = {group.name for group in leaves}
    by_name = {group.name: group for group in leaves}
    joined = [found for found in _joined(cluster, tuple(by_name)) if found[1]]
    whole = len(joined) == 1 and len(joined[0][0]) == len(leaves)
    layer = [] if whole else [_upper(f"spines-{n}", found, by_name) for n, found in enumerate(joined, 1)]
    below = {leaf: switch.name for switch in layer for leaf in switch.switches}
    root = next(name for name in ("spine", "core", f"{cluster.name}-spine") if name not in taken)
    switches = tuple(dict.fromkeys(below.get(group.name, group.name) for group in leaves))
    every = fold([name for group in leaves for name in expand(group.nodes)])
    stands_for = f"{root}: {fold(joined[0][1])}" if whole else ""
    if layer:
        stands_for = f"{root}: no declared cable joins what is below it"
    return (*layer, UpperSwitch(root, switches, every, stands_for))


def _upper(
    name: str, found: tuple[tuple[str, ...], tuple[str, ...]], by_name: dict[str, SwitchGroup]
) -> UpperSwitch:
    leaves, spines = found
    nodes = fold([node for leaf in leaves for node in expand(by_name[leaf].nodes)])
    return UpperSwitch(name, leaves, nodes, f"{name}: {fold(spines)}")


def _joined(cluster: Cluster, leaves: tuple[str, ...]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """These leaves in sets that share spines, directly or by other leaves, each with its spines."""
    sets: list[tuple[set[str], set[str]]] = []
    for fabric in cluster.fabrics.values():
        for leaf, spines in fabric.spines_of.items():
            near = [one for one in sets if one[1] & set(spines)]
            for one in near:
                sets.remove(one)
            sets.append(
                (
                    {_written(leaf)}.union(*(one[0] for one in near)),
                    set(spines).union(*(one[1] for one in near)),
                )
            )
    ordered = [
        (tuple(leaf for leaf in leaves if leaf in one[0]), tuple(sorted(one[1], key=natural))) for one in sets
    ]
    return sorted((one for one in ordered if one[0]), key=lambda one: leaves.index(one[0][0]))


def differences(cluster: Cluster, kind: str, found: Mapping[str, str]) -> list[str]:
    """Where slurmctld has other nodes (by switch or block, as hostlists) than declared, in the lowest layer that differs."""
    leaves = groups(cluster, kind)
    for layer in (leaves, upper(cluster, leaves) if kind == "tree" else ()):
        wrong = []
        for switch in layer:
            there = found.get(switch.name)
            if there is None:
                wrong.append(f"{switch.name} is missing")
            elif set(parse_hostlist(there)) != set(parse_hostlist(switch.nodes)):
                wrong.append(f"{switch.name} has {there}, not {switch.nodes}")
        if wrong:
            return wrong
    return []


def _written(name: str) -> str:
    """A name in the characters that Slurm takes."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name)


def place(node: Node, kind: str) -> str | None:
    """The rack in a block topology, the declared switch in a tree."""
    return node.rack if kind == "block" else node.switch


def block_sizes(cluster: Cluster, options: SlurmOptions) -> tuple[int, ...]:
    """Declared, or the size of the smallest block: no block may have fewer nodes than the first."""
    return options.block_sizes or (min(group.size for group in groups(cluster, "block")),)
