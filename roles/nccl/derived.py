"""NCCL's settings of a node, from the declared fabric; each with why it is set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rackwright.model.cluster import Cluster, Network, Node
from rackwright.model.hcas import DeclaresHcas, Hca, MarksTraffic, NamesInterfaces, ReducesInSwitches
from rackwright.model.types import LinkKind, NetworkPurpose

if TYPE_CHECKING:
    from rackwright.roles.nccl.options import NcclOptions

TOPOLOGY = "/etc/nccl-topology.xml"
_GUIDE = "NCCL user guide, environment variables"


class Setting(NamedTuple):
    """A line of /etc/nccl.conf."""

    name: str
    value: str
    source: str
    """Source of the value, for the comment above it."""


def networks(cluster: Cluster, node: Node, options: NcclOptions) -> tuple[Network, ...]:
    """Those that carry collectives on this node, in the cluster file's order."""
    on = {entry.network for entry in node.addresses}
    return tuple(
        network
        for name, network in cluster.networks.items()
        if name in on
        and (
            network.purpose is NetworkPurpose.FABRIC if options.networks is None else name in options.networks
        )
    )


def devices(cluster: Cluster, node: Node, options: NcclOptions) -> tuple[Hca, ...]:
    """The devices that NCCL is to use, by network and rail.

    NCCL's verbs transport makes its queue pairs without rdma_cm, which iWARP needs, and EFA has a plugin: devices of
    these kinds are left out.
    """
    declared = node.offers(DeclaresHcas)
    usable = [
        network.name
        for network in networks(cluster, node, options)
        if network.kind is LinkKind.INFINIBAND or network.kind.converged
    ]
    found = () if declared is None else declared.hcas(cluster, node)
    return tuple(
        hca for name in usable for hca in sorted(found, key=lambda hca: hca.rail) if hca.network == name
    )


def settings(cluster: Cluster, node: Node, options: NcclOptions) -> tuple[Setting, ...]:
    """Every line of the file: derived ones, and then those that the cluster file has instead or adds."""
    found = [one for one in derived(cluster, node, options) if one.name not in options.environment]
    by_fabric = {one.name: one.value for one in derived(cluster, node, options)}
    for name, value in options.environment.items():
        instead = f" instead of {by_fabric[name]}, which the fabric gives" if name in by_fabric else ""
        found.append(Setting(name, value, f"the cluster file, roles.nccl.environment{instead}"))
    return tuple(found)


def derived(cluster: Cluster, node: Node, options: NcclOptions) -> tuple[Setting, ...]:
    """What follows from the declaration alone."""
    used = networks(cluster, node, options)
    hcas = devices(cluster, node, options)
    return tuple(
        one
        for some in (
            _devices(hcas),
            _socket(cluster, node, options),
            _roce(used, hcas, node, options),
            _rails(cluster, used, options),
            _sharp(used, hcas, node),
            _efa(used),
            _topology(options),
        )
        for one in some
    )


def _devices(hcas: tuple[Hca, ...]) -> Iterator[Setting]:
    if hcas:
        names = ",".join(hca.name if hca.port == 1 else f"{hca.name}:{hca.port}" for hca in hcas)
        rails = ", ".join(f"{hca.network} rail {hca.rail}" for hca in hcas)
        yield Setting(
            "NCCL_IB_HCA", f"={names}", f"declared devices, in the order of {rails}; = is exactly these"
        )


def _socket(cluster: Cluster, node: Node, options: NcclOptions) -> Iterator[Setting]:
    if options.socket_interface is not None:
        source = "the cluster file, roles.nccl.socket_interface"
        yield Setting("NCCL_SOCKET_IFNAME", f"={options.socket_interface}", source)
        return
    named = node.offers(NamesInterfaces)
    management = cluster.management.name
    name = None if named is None else named.interface(cluster, management)
    if name is not None:
        yield Setting(
            "NCCL_SOCKET_IFNAME", f"={name}", f"declared interface of {management}; = is exactly this"
        )


def _roce(
    used: tuple[Network, ...], hcas: tuple[Hca, ...], node: Node, options: NcclOptions
) -> Iterator[Setting]:
    if not hcas or not any(network.kind.converged for network in used):
        return
    marks = node.offers(MarksTraffic)
    if marks is not None:
        yield Setting(
            "NCCL_IB_TC",
            str(marks.traffic_class),
            f"DSCP {marks.traffic_class // 4} of the role roce, times 4",
        )
    if options.gid_index is not None:
        source = "the cluster file, roles.nccl.gid_index; NCCL 2.21 and later finds it"
        yield Setting("NCCL_IB_GID_INDEX", str(options.gid_index), source)


def _rails(cluster: Cluster, used: tuple[Network, ...], options: NcclOptions) -> Iterator[Setting]:
    if options.cross_nic is not None:
        yield Setting("NCCL_CROSS_NIC", str(options.cross_nic), "the cluster file, roles.nccl.cross_nic")
        return
    fabrics = [cluster.fabrics[network.name] for network in used if network.name in cluster.fabrics]
    apart = [
        fabric
        for fabric in fabrics
        if fabric.rails > 1
        and not fabric.spines
        and all(len(fabric.rails_of(leaf)) <= 1 for leaf in fabric.leaves)
    ]
    if fabrics and len(apart) == len(fabrics):
        yield Setting(
            "NCCL_CROSS_NIC", "0", f"each rail has leaves that no spine connects to another rail's ({_GUIDE})"
        )


def _sharp(used: tuple[Network, ...], hcas: tuple[Hca, ...], node: Node) -> Iterator[Setting]:
    reducing = node.offers(ReducesInSwitches)
    names = [network.name for network in used if any(hca.network == network.name for hca in hcas)]
    if reducing is not None and names and all(reducing.reduces(name) for name in names):
        yield Setting("NCCL_COLLNET_ENABLE", "1", f"SHARP is declared for {', '.join(names)} ({_GUIDE})")


def _efa(used: tuple[Network, ...]) -> Iterator[Setting]:
    if any(network.kind is LinkKind.EFA for network in used):
        yield Setting(
            "FI_PROVIDER", "efa", "the fabric is of the kind efa; read by libfabric below aws-ofi-nccl"
        )


def _topology(options: NcclOptions) -> Iterator[Setting]:
    if options.topology_file:
        yield Setting("NCCL_TOPO_FILE", TOPOLOGY, f"made from the SKU and the rails' devices ({_GUIDE})")
