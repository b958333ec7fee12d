"""What roles declare about a node's RDMA devices and fabric ports, found with `node.offers(Interface)`.

As rackwright.model.interfaces: options classes implement these, and no role names or imports another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node


class Hca(NamedTuple):
    """An RDMA device of a node, at one port of one rail."""

    name: str
    """As /sys/class/infiniband has it once the role that names it was applied, e.g. `mlx5_rail0`."""
    network: str
    """Network of the cluster file."""
    rail: int
    pci: str | None = None
    """PCI address, e.g. `0000:18:00.0`; None: of a software device, which has none."""
    netdev: str | None = None
    """Network interface, where it is declared; None: what sysfs has below the device."""
    port: int = 1


class DeclaresHcas:
    """Options of the role that names the RDMA devices of a node."""

    def hcas(self, cluster: Cluster, node: Node) -> tuple[Hca, ...]:
        """Those of this node, network by network and rail by rail."""
        raise NotImplementedError


class NamesInterfaces:
    """Options of the role that names the network interfaces of a node."""

    def interface(self, cluster: Cluster, network: str, rail: int = 0) -> str | None:
        """The interface with a network's (a rail's) address: a VLAN's, where it is tagged; None: not declared."""
        raise NotImplementedError

    def port(self, network: str, rail: int = 0) -> str | None:
        """The port or bond on which a network (a rail of it) arrives, below any VLAN; None: not declared."""
        raise NotImplementedError


class LimitsLockedMemory:
    """Options of the role that limits how much memory sessions and services may lock."""

    @property
    def locks_any_memory(self) -> bool:
        """Whether both may lock as much as there is, as RDMA registration needs."""
        raise NotImplementedError


class RunsSubnetManager:
    """Options of the role that runs InfiniBand's subnet manager, on the nodes that run it."""

    def subnet_managers(self, network: str) -> tuple[str, ...]:
        """Nodes that run one for a network, the master first; empty: a switch or UFM does."""
        raise NotImplementedError

    def pkeys(self, cluster: Cluster, node: Node, network: str) -> frozenset[int]:
        """P_Keys that the ports of a node are to have on a network, bit 15 set where it is a full member."""
        raise NotImplementedError


class MarksTraffic:
    """Options of the role that sets the quality of service of RDMA traffic on Ethernet."""

    @property
    def traffic_class(self) -> int:
        """The IP traffic class of RDMA packets: DSCP times 4, without ECN's bits."""
        raise NotImplementedError

    priority: int
    """The 802.1p priority that those packets have, 0 to 7."""


class ReducesInSwitches:
    """Options of the role that declares SHARP: the switches of a fabric reduce what passes them."""

    def reduces(self, network: str) -> bool:
        """Whether collectives on this network may use it."""
        raise NotImplementedError


class SetsCollectives:
    """Options of the role that derives the settings of NCCL from the declared fabric."""

    def collective_environment(self, cluster: Cluster, node: Node) -> Mapping[str, str]:
        """NCCL_* variables of this node, as its /etc/nccl.conf has them."""
        raise NotImplementedError
