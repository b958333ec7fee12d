"""Mistakes of the opensm role's section that only the whole cluster shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackwright.documents.nearest import suggest
from rackwright.lock.for_roles import Trouble
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import expand, fold
from rackwright.model.types import LinkKind
from rackwright.roles.opensm import layout

if TYPE_CHECKING:
    from rackwright.roles.opensm.options import OpensmOptions, Subnet

_NVIDIAS = ("ar_ftree", "ar_updn")


def problems(options: OpensmOptions, cluster: Cluster) -> Iterator[Trouble]:
    """(path, sentence, hint) of each."""
    for name, subnet in options.networks.items():
        path = f"networks.{name}"
        network = cluster.networks.get(name)
        if network is None:
            yield path, f"There is no network {name}.", suggest(name, cluster.networks, what="networks")
            continue
        if network.kind is not LinkKind.INFINIBAND:
            yield (
                path,
                f"{name} is {network.kind}: only InfiniBand has a subnet manager.",
                "remove it, or declare `kind: infiniband`",
            )
            continue
        yield from _nodes(cluster, path, name, subnet)
        yield from _partitions(cluster, path, name, subnet)
        yield from _routing(cluster, path, name, subnet)


def _nodes(cluster: Cluster, path: str, network: str, subnet: Subnet) -> Iterator[Trouble]:
    fabric = cluster.fabrics.get(network)
    for number, name in enumerate(subnet.nodes):
        place = f"{path}.nodes[{number}]"
        node = cluster.by_name.get(name)
        if node is None:
            yield place, f"There is no node {name}.", suggest(name, cluster.by_name, what="nodes")
        elif node.address_on(network) is None:
            yield place, f"{name} has no address on {network}, and so no port to reach it by.", None
        elif "opensm" not in node.options:
            yield (
                place,
                f"{name} does not have the role opensm.",
                "put the section where all of its nodes get it",
            )
        else:
            for island in layout.islands(fabric, network):
                rail = island.rail_of(fabric, name)
                if rail is not None and layout.device_of(cluster, node, network, subnet, rail) is None:
                    yield (
                        place,
                        f"No RDMA device of {name} is declared on rail {rail} of {network}.",
                        "declare it in the role `rdma`, or name one: `device: mlx5_rail0`",
                    )
    if all(name in cluster.by_name for name in subnet.nodes):
        for island in layout.unmanaged(cluster, network, subnet):
            switches = ", ".join(sorted(island.switches))
            yield (
                f"{path}.nodes",
                f"No node here has a cable to the subnet of {switches}: its ports would never become active.",
                "name a node that is cabled there, too",
            )


def _partitions(cluster: Cluster, path: str, network: str, subnet: Subnet) -> Iterator[Trouble]:
    for name, partition in subnet.partitions.items():
        for key, text in (("members", partition.members), ("limited", partition.limited)):
            if text is None or text == "all":
                continue
            names = expand(text)
            place = f"{path}.partitions.{name}.{key}"
            unknown = [one for one in names if one not in cluster.by_name]
            if unknown:
                yield place, f"There is no node {fold(unknown)}.", None
                continue
            away = [one for one in names if cluster.by_name[one].address_on(network) is None]
            if away:
                yield place, f"{fold(away)} has no address on {network}.", None
            without = [one for one in names if one not in subnet.guids and one not in away]
            if without:
                yield (
                    place,
                    f"The port GUIDs of {fold(without)} are not declared.",
                    f"{path}.guids: {{{without[0]}: [0x0c42a10300a1b2c3]}} (ibstat -p prints them)",
                )
    for name in subnet.guids:
        if name not in cluster.by_name:
            yield f"{path}.guids.{name}", f"There is no node {name}.", None


def _routing(cluster: Cluster, path: str, network: str, subnet: Subnet) -> Iterator[Trouble]:
    fabric = cluster.fabrics.get(network)
    engine, place = subnet.routing, f"{path}.routing"
    if engine in _NVIDIAS:
        yield (
            place,
            f"The distribution's opensm does not have {engine}: UFM and NVIDIA's managed switches do.",
            f"{engine.removeprefix('ar_')} here, or let UFM or a switch run the subnet manager, without this role",
        )
    elif engine in ("ftree", "updn", "dnup") and fabric is not None and not fabric.spines:
        yield place, f"{engine} routes trees, and {network} does not declare spines.", "routing: auto"
    elif engine == "ftree" and fabric is not None and not layout.is_fat_tree(fabric):
        yield (
            place,
            f"ftree needs the same number of cables from each leaf to each spine, which {network} does not have.",
            "routing: updn",
        )
