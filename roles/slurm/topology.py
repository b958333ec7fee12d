"""Switches and blocks of the declared cluster in Slurm's terms. Pure functions."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

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

    A job that spans two such racks loses NVLink between them, which a tree of switches cannot express
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
    """The layers above the leaves of a tree, the root last: leaves that spines connect are joined below a root of all.

    Without declared spines, and where spines connect all leaves, that is the root alone.
    """
    if len(leaves) < 2:
        return ()
    taken = {group.name for group in leaves}
    root = next(name for name in ("spine", "core", f"{cluster.name}-spine") if name not in taken)
    connected = list(_connected(cluster, leaves))
    if len(connected) == 1 and len(connected[0][0]) == len(leaves):
        return (_joining(root, leaves, fold(connected[0][1])),)
    layer = [
        _joining(f"spines-{number}", below, fold(spines))
        for number, (below, spines) in enumerate(connected, 1)
    ]
    joined = {leaf: switch.name for switch in layer for leaf in switch.switches}
    switches = tuple(dict.fromkeys(joined.get(group.name, group.name) for group in leaves))
    whole = _joining(root, leaves, "no declared cable connects what is below it" if layer else "")
    return (*layer, replace(whole, switches=switches))


def _joining(name: str, leaves: tuple[SwitchGroup, ...], stands_for: str) -> UpperSwitch:
    nodes = fold([node for leaf in leaves for node in expand(leaf.nodes)])
    comment = f"{name}: {stands_for}" if stands_for else ""
    return UpperSwitch(name, tuple(leaf.name for leaf in leaves), nodes, comment)


def _connected(
    cluster: Cluster, leaves: tuple[SwitchGroup, ...]
) -> Iterator[tuple[tuple[SwitchGroup, ...], tuple[str, ...]]]:
    """These leaves as spines connect them, with the spines."""
    for fabric in cluster.fabrics.values():
        for switches in fabric.subnets:
            names = set(map(_written, switches))
            below = tuple(leaf for leaf in leaves if leaf.name in names)
            spines = tuple(switch for switch in switches if switch in fabric.spines)
            if below and spines:
                yield below, spines


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
