"""Interfaces of roles for a node's RDMA devices and fabric ports, found with `node.offers(Interface)`.

As in rackwright.model.interfaces, options classes implement these, and no role refers to another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node


class Hca(NamedTuple):
    """An RDMA device of a node at one port of one rail."""

    name: str
    """Name in /sys/class/infiniband once the naming role is applied, e.g. `mlx5_rail0`."""
    network: str
    """Network name in the cluster file."""
    rail: int
    pci: str | None = None
    """PCI address, e.g. `0000:18:00.0`; None: a software device without one."""
    netdev: str | None = None
    """Declared network interface; None: the one that sysfs lists below the device."""
    port: int = 1


class DeclaresHcas:
    """Options of the role that names a node's RDMA devices."""

    def hcas(self, cluster: Cluster, node: Node) -> tuple[Hca, ...]:
        """RDMA devices of this node, by network and rail."""
        raise NotImplementedError


class NamesInterfaces:
    """Options of the role that names a node's network interfaces."""

    def interface(self, cluster: Cluster, network: str, rail: int = 0) -> str | None:
        """The interface with the address of a network (or rail), a VLAN interface if tagged; None: not declared."""
        raise NotImplementedError

    def port(self, network: str, rail: int = 0) -> str | None:
        """The port or bond that carries a network (or rail), below any VLAN; None: not declared."""
        raise NotImplementedError


class LimitsLockedMemory:
    """Options of the role that limits locked memory of sessions and services."""

    @property
    def locks_any_memory(self) -> bool:
        """Whether both have unlimited locked memory, as RDMA registration needs."""
        raise NotImplementedError


class RunsSubnetManager:
    """Options of the role that runs the InfiniBand subnet manager, on its nodes."""

    def subnet_managers(self, network: str) -> tuple[str, ...]:
        """Nodes that run a subnet manager for a network, the master first; empty: a switch or UFM runs it."""
        raise NotImplementedError

    def pkeys(self, cluster: Cluster, node: Node, network: str) -> frozenset[int]:
        """P_Keys that a network's node ports should have, with bit 15 set for full members."""
        raise NotImplementedError


class MarksTraffic:
    """Options of the role that sets the quality of service of RDMA traffic on Ethernet."""

    @property
    def traffic_class(self) -> int:
        """IP traffic class of RDMA packets: DSCP times 4, without the ECN bits."""
        raise NotImplementedError

    priority: int
    """802.1p priority of those packets, 0 to 7."""


class ReducesInSwitches:
    """Options of the role that declares SHARP: a fabric's switches perform reductions."""

    def reduces(self, network: str) -> bool:
        """Whether collectives on this network may use SHARP."""
        raise NotImplementedError


class SetsCollectives:
    """Options of the role that derives NCCL settings from the declared fabric."""

    def collective_environment(self, cluster: Cluster, node: Node) -> Mapping[str, str]:
        """NCCL_* variables of this node, as in its /etc/nccl.conf."""
        raise NotImplementedError
