"""Mistakes of the rdma role's section that only the whole cluster shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackwright.documents.nearest import suggest
from rackwright.errors import RackwrightError
from rackwright.lock.for_roles import Trouble, group_of, has_stack, lock_problems
from rackwright.model.cluster import Cluster, Network, Node
from rackwright.model.hcas import LimitsLockedMemory
from rackwright.model.types import LinkKind, NetworkPurpose
from rackwright.roles.rdma import sharp

if TYPE_CHECKING:
    from rackwright.roles.rdma.options import Device, RdmaOptions

_SOFT = {
    "rxe": frozenset({LinkKind.ROCE, LinkKind.SPECTRUM_X}),
    "siw": frozenset({LinkKind.IWARP}),
}


def problems(options: RdmaOptions, cluster: Cluster) -> Iterator[Trouble]:
    """(path, sentence, hint) of each."""
    nodes = cluster.running("rdma", options)
    yield from _default_network(options, cluster)
    yield from sharp.problems(options.sharp, cluster)
    taken: dict[tuple[str, int], str] = {}
    for name, device in options.devices.items():
        path = f"devices.{name}"
        network = cluster.networks.get(options.on(device))
        if network is None:
            if device.network is not None:
                hint = suggest(device.network, cluster.networks, what="networks")
                yield f"{path}.network", f"There is no network {device.network}.", hint
            continue
        yield from _device(path, device, network)
        first = taken.setdefault((network.name, device.rail), name)
        if first != name:
            yield (
                f"{path}.rail",
                f"{first} is on rail {device.rail} of {network.name} too.",
                "each rail of a network has one device",
            )
        if device.soft is not None:
            yield from _interface(options, cluster, nodes, path, device)


def _default_network(options: RdmaOptions, cluster: Cluster) -> Iterator[Trouble]:
    used = not options.devices or any(device.network is None for device in options.devices.values())
    if used and options.network not in cluster.networks:
        hint = suggest(options.network, cluster.networks, what="networks")
        yield "network", f"There is no network {options.network}.", hint
    elif used and not cluster.networks[options.network].kind.rdma:
        yield (
            "network",
            f"{options.network} is plain Ethernet: it has no RDMA devices.",
            f"declare the network's `kind`, e.g. `kind: {LinkKind.INFINIBAND}` or `kind: {LinkKind.ROCE}`",
        )


def _device(path: str, device: Device, network: Network) -> Iterator[Trouble]:
    if device.network is not None and not network.kind.rdma:
        yield f"{path}.network", f"{network.name} is plain Ethernet: it has no RDMA devices.", None
    if device.rail >= network.rails:
        last = f"rails 0 to {network.rails - 1}" if network.rails > 1 else "rail 0 alone"
        yield f"{path}.rail", f"{network.name} has {last}, and this is rail {device.rail}.", None
    if device.soft is not None and network.kind.rdma and network.kind not in _SOFT[device.soft]:
        right = next((soft for soft, kinds in _SOFT.items() if network.kind in kinds), None)
        yield (
            f"{path}.soft",
            f"{device.soft} cannot be on {network.name}, which is {network.kind}.",
            f"soft: {right}" if right else "no software device speaks it",
        )
    if device.netdev is not None and network.kind is LinkKind.INFINIBAND:
        yield (
            f"{path}.netdev",
            f"{network.name} is InfiniBand, and its interfaces are made by the role ipoib.",
            "remove it",
        )


def _interface(
    options: RdmaOptions, cluster: Cluster, nodes: tuple[Node, ...], path: str, device: Device
) -> Iterator[Trouble]:
    without = [node.name for node in nodes if options.netdev(cluster, node, device) is None]
    if without:
        yield (
            f"{path}.netdev",
            f"{', '.join(without)}: no interface is declared for rail {device.rail} of {options.on(device)}.",
            "name it, e.g. `netdev: rail0`, or declare the network in the role `network`",
        )


def of_lock(options: RdmaOptions, cluster: Cluster) -> Iterator[Trouble]:
    """What DOCA-OFED lacks: a lock, packages in it, or GPU nodes at all."""
    if cluster.gpu_stack is None or cluster.gpu_stack.ofed == "inbox":
        return
    found = list(lock_problems(cluster, "rdma"))
    if found:
        yield from found
        return
    for node in cluster.running("rdma", options):
        if not has_stack(node):
            continue
        try:
            locked = group_of(cluster, node).components.get("ofed", ())
        except RackwrightError:
            return  # reported by lock_problems
        if not locked:
            yield (
                "",
                f"The lock has no DOCA-OFED packages for {node.name}, a {node.sku.name} on {node.os}.",
                "set `gpu_stack.ofed: inbox`, or lock a DOCA release that is known for this system",
            )
            return


def warnings(options: RdmaOptions, cluster: Cluster) -> Iterator[Trouble]:
    """Allowed, but rarely intended."""
    nodes = cluster.running("rdma", options)
    yield from sharp.warnings(options.sharp, cluster)
    yield from _missing_rails(options, cluster, nodes)
    limited = [
        node.name
        for node in nodes
        if (limits := node.offers(LimitsLockedMemory)) is not None and not limits.locks_any_memory
    ]
    if limited:
        yield (
            "",
            f"{', '.join(limited)}: the role tuning limits locked memory, which RDMA registers buffers in.",
            "tuning: {limits: {memlock: unlimited}, daemon_memlock: infinity}",
        )


def _missing_rails(options: RdmaOptions, cluster: Cluster, nodes: tuple[Node, ...]) -> Iterator[Trouble]:
    """Rails of the nodes' fabrics that no device is on: nothing names these ports, and no collective uses them."""
    has = {(options.on(device), device.rail) for device in options.devices.values()}
    names = {entry.network for node in nodes for entry in node.addresses}
    for name, network in cluster.networks.items():
        if name not in names or network.purpose is not NetworkPurpose.FABRIC or not network.kind.rdma:
            continue
        without = [rail for rail in range(network.rails) if (name, rail) not in has]
        if without:
            numbers = ", ".join(map(str, without))
            rails = f"rail{'s' if len(without) > 1 else ''} {numbers} of " if network.rails > 1 else ""
            yield (
                "devices",
                f"No device is declared for {rails}{name}.",
                f'mlx5_rail{without[0]}: {{pci: "0000:18:00.0", rail: {without[0]}}}',
            )
