"""A cluster file as a rack: what the lab boots for each declared node."""

from __future__ import annotations

import json
from ipaddress import IPv4Address
from pathlib import Path

from rackwright.clusterfile.load import load_cluster
from rackwright.errors import LabError
from rackwright.lab.spec import LeafPort, NodeSpec, RackSpec, VmSpec
from rackwright.model.cluster import Cluster, Network, Node, NodeAddress
from rackwright.model.fabric import NodePort
from rackwright.model.sku import Sku
from rackwright.model.types import LinkKind, NetworkPurpose, Platform


def load_rack_spec(path: Path) -> RackSpec:
    """The rack of a cluster file.

    Raises ClusterFileError where the file is wrong and LabError where the lab cannot boot it.
    """
    return rack_spec(load_cluster(path, locked=False))


def rack_spec(cluster: Cluster) -> RackSpec:
    """The rack of a cluster. Raises LabError naming what keeps the lab from booting it."""
    key = cluster.ssh.key
    if key is None:
        raise LabError(
            f"{cluster.path} names no `ssh.key`, which opens the lab's nodes.",
            hint="e.g. `key: .lab/id_ed25519`; the lab creates it",
        )
    management = cluster.management
    return RackSpec(
        name=cluster.name,
        nodes=tuple(_node_spec(cluster, node) for node in cluster.nodes),
        bridge_address=f"{_bridge(cluster, management)}/{management.cidr.prefixlen}",
        apt_proxy=cluster.mirrors.apt_proxy,
        admin_user=cluster.ssh.user,
        key=key,
        known_hosts=cluster.ssh.known_hosts,
        ssh_port=cluster.ssh.port,
        gateway=None if management.gateway is None else str(management.gateway),
    )


def _node_spec(cluster: Cluster, node: Node) -> NodeSpec:
    if node.platform is Platform.BARE_METAL:
        raise LabError(
            f"{node.name} is {node.platform}, and the lab boots containers and virtual machines.",
            hint="set `platform: container` or `platform: vm` to boot the file as a lab rack",
        )
    if node.lab is None:
        raise LabError(f"{node.name} declares no lab size.", hint="e.g. `lab: {cpus: 2, memory_mib: 2048}`")
    management = cluster.management
    further = [
        entry
        for entry in node.addresses
        if cluster.networks[entry.network].purpose is not NetworkPurpose.MANAGEMENT
    ]
    mtus = tuple(cluster.networks[entry.network].mtu for entry in further)
    cables = tuple(_leaf_port(cluster, node, entry) for entry in further)
    return NodeSpec(
        name=node.name,
        address=str(cluster.management_address(node)),
        prefix_length=management.cidr.prefixlen,
        image=str(node.os),
        cpus=node.lab.cpus,
        memory_mib=node.lab.memory_mib,
        mtu=management.mtu,
        extra_addresses=tuple(
            f"{entry.address}/{cluster.networks[entry.network].subnet(entry.rail).prefixlen}"
            for entry in further
        ),
        extra_mtus=mtus if set(mtus) - {management.mtu} else (),
        leaf_ports=cables if any(cables) else (),
        containers=node.lab.containers,
        gpus=_gpus(node),
        vm=_vm(node.sku) if node.platform is Platform.VM else None,
    )


def _leaf_port(cluster: Cluster, node: Node, entry: NodeAddress) -> LeafPort | None:
    """The declared leaf port of an address; InfiniBand's leaves are not made."""
    fabric = cluster.fabrics.get(entry.network)
    if fabric is None or fabric.kind is LinkKind.INFINIBAND:
        return None
    there = fabric.leaf_of.get(NodePort(node.name, entry.rail))
    if there is None:
        return None
    return LeafPort(there.switch, fabric.port_name.format(port=there.port))


def _vm(sku: Sku) -> VmSpec:
    """The SKU's shape; the cluster file's checks made the lab size equal to it."""
    return VmSpec(
        sockets=sku.sockets,
        cores=sku.cores_per_socket,
        threads=sku.threads_per_core,
        numa_nodes=sku.numa_nodes or 1,
        data_disks_gb=tuple(drives.size_gb for drives in sku.nvme for _ in range(drives.count)),
    )


def _gpus(node: Node) -> str | None:
    """What the node's tools tell of, where it is declared to simulate its GPUs."""
    if not node.simulates_gpus or node.sku.gpus is None:
        return None
    mig = [profile for profile, count in sorted(node.mig.items()) for _ in range(count)]
    return json.dumps({"gpus": node.sku.gpus.model_dump(mode="json"), "mig": mig})


def _bridge(cluster: Cluster, management: Network) -> IPv4Address:
    """The bridge is the management network's gateway, else its first address that no node has."""
    if management.gateway is not None:
        return management.gateway
    taken = {cluster.management_address(node) for node in cluster.nodes}
    for address in management.cidr.hosts():
        if address not in taken:
            return address
    raise LabError(f"No address is free for the bridge in {management.name}, {management.cidr}.")
