"""NCCL's topology file: which GPU and which RDMA device are behind one PCIe switch, as the cluster file declares it.

For virtual machines, whose PCI addresses do not show it; on bare metal NCCL reads it from sysfs. NCCL looks up each device by
its address in the file and takes from sysfs what the file leaves out (NVIDIA/nccl, src/graph/xml.cc; the form is that of
Azure's ndv5-topo.xml; both read 2026-11-25).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rackwright.model.cluster import Cluster, Node
from rackwright.model.hcas import Hca
from rackwright.model.sku import Gpus
from rackwright.model.types import LinkKind
from rackwright.render import render
from rackwright.roles.nccl.derived import devices

if TYPE_CHECKING:
    from rackwright.roles.nccl.options import NcclOptions

Problem = tuple[str, str, str | None]
_SPEED = {3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe", 6: "64.0 GT/s PCIe"}
"""By PCIe generation, as sysfs prints it; the generation's rate is that of its specification."""


class Switch(NamedTuple):
    """GPUs and RDMA devices behind one PCIe switch."""

    number: int
    numa: int
    gpus: tuple[int, ...]
    hcas: tuple[Hca, ...]

    @property
    def address(self) -> str:
        """One that no device has: the switch does not show in the machine."""
        return f"ffff:ff:{self.number:02x}.0"


def switches(cluster: Cluster, node: Node, options: NcclOptions) -> tuple[Switch, ...]:
    """Devices that are near the same GPUs are behind one switch, in the order of the rails."""
    near = _near(node)
    by_gpus: dict[tuple[int, ...], list[Hca]] = {}
    for hca in devices(cluster, node, options):
        by_gpus.setdefault(near.get(hca.rail, ()), []).append(hca)
    return tuple(
        Switch(number, node.sku.gpu_sockets[gpus[0]], gpus, tuple(hcas))
        for number, (gpus, hcas) in enumerate(by_gpus.items(), start=1)
    )


def topology(cluster: Cluster, node: Node, options: NcclOptions) -> str:
    """The file of a node; nothing that `problems` refuses may be declared."""
    gpus = node.sku.gpus
    assert gpus is not None, node.name
    found = switches(cluster, node, options)
    numas = sorted(set(node.sku.gpu_sockets))
    apart = set(range(gpus.count)) - {gpu for one in found for gpu in one.gpus}
    return render(
        "nccl/topology.xml.j2",
        numas={numa: [one for one in found if one.numa == numa] for numa in numas},
        apart={numa: [gpu for gpu in sorted(apart) if node.sku.gpu_sockets[gpu] == numa] for numa in numas},
        addresses=gpus.pci_addresses,
        link=f'link_speed="{_SPEED[gpus.pcie_generation or 0]}" link_width="{gpus.pcie_width}"',
        nic_class={
            hca.name: "0x020700" if cluster.networks[hca.network].kind is LinkKind.INFINIBAND else "0x020000"
            for one in found
            for hca in one.hcas
        },
    )


def problems(cluster: Cluster, node: Node, options: NcclOptions) -> Iterator[Problem]:
    """What the file needs and nothing declares."""
    sku = node.sku
    lacks = [] if sku.gpus is None else list(_of_sku(sku.gpus))
    if sku.gpus is not None and not sku.gpu_sockets:
        lacks.append("`gpu_sockets`")
    if sku.gpus is not None and sku.numa_nodes != sku.sockets:
        lacks.append("`numa_nodes` as many as `sockets`")
    hcas = devices(cluster, node, options)
    near = _near(node)
    if any(not near.get(hca.rail) for hca in hcas):
        lacks.append("`near_gpus` of every fabric port")
    elif sku.gpu_sockets and any(len({sku.gpu_sockets[gpu] for gpu in near[hca.rail]}) > 1 for hca in hcas):
        lacks.append("`near_gpus` on one socket for each port")
    if sku.gpus is None:
        yield "topology_file", f"{node.name} has no GPUs: its SKU {sku.name} declares none.", "leave it out"
    elif lacks:
        text = f"The topology file of {node.name} needs of its SKU {sku.name}: {', '.join(lacks)}."
        yield "topology_file", text, f"declare them in `skus.{sku.name}`, or leave `topology_file` out"
    if not hcas or any(hca.pci is None for hca in hcas):
        yield (
            "topology_file",
            f"{node.name} has no RDMA devices at PCI addresses for NCCL.",
            "declare them in `roles.rdma.devices`",
        )


def _of_sku(gpus: Gpus) -> Iterator[str]:
    if not gpus.pci_addresses:
        yield "`gpus.pci_addresses`"
    if gpus.pcie_generation not in _SPEED:
        yield f"`gpus.pcie_generation` from {min(_SPEED)} to {max(_SPEED)}"
    if gpus.pcie_width is None:
        yield "`gpus.pcie_width`"


def _near(node: Node) -> dict[int | None, tuple[int, ...]]:
    """GPUs by the rail that is near them."""
    return {nic.rail: tuple(sorted(nic.near_gpus)) for nic in node.sku.nics if nic.rail is not None}
