"""A cluster file as a rack: what the lab boots for each declared node."""

from __future__ import annotations

import json
from ipaddress import IPv4Address
from pathlib import Path

from rackwright.clusterfile.load import load_cluster
from rackwright.errors import LabError
from rackwright.lab.spec import BmcSpec, LeafPort, NodeSpec, RackSpec, VmSpec
from rackwright.model.bmc import Bmc, BmcProtocol
from rackwright.model.cluster import Cluster, Network, Node, NodeAddress
from rackwright.model.fabric import NodePort
from rackwright.model.sku import Sku
from rackwright.model.types import LinkKind, NetworkPurpose, Platform, Workload

_ON_KUBERNETES = (Workload.KUBERNETES, Workload.SLURM_ON_KUBERNETES)


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
            f"{cluster.path} does not set `ssh.key`, which opens the lab's nodes.",
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
        kubernetes=any(_runs_kubernetes(node) for node in cluster.nodes),
        bmc_bridge=_bmc_bridge(cluster),
    )


def _runs_kubernetes(node: Node) -> bool:
    return node.workload in _ON_KUBERNETES or (node.lab is not None and node.lab.kubelet)


def _node_spec(cluster: Cluster, node: Node) -> NodeSpec:
    if node.platform is Platform.BARE_METAL and node.bmc is None:
        raise LabError(
            f"{node.name} is {node.platform} without a BMC, which the lab cannot boot.",
            hint="set `platform: container` or `platform: vm` to boot the file as a lab rack, or declare `bmc:`",
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
        kubelet=node.lab.kubelet,
        gpus=_gpus(node),
        vm=None if node.platform is Platform.CONTAINER else _vm(node.sku),
        bmc=_bmc(cluster, node),
    )


def _bmc(cluster: Cluster, node: Node) -> BmcSpec | None:
    """The virtual BMC of a machine that the lab racks and does not boot."""
    if node.bmc is None:
        return None
    if node.bmc.protocol is not BmcProtocol.REDFISH:
        raise LabError(
            f"The BMC of {node.name} is declared with {node.bmc.protocol}, but lab BMCs support only redfish."
        )
    if cluster.ssh.key is None:
        raise LabError(f"{cluster.path} does not set `ssh.key`; the lab keeps the BMC password next to it.")
    return BmcSpec(
        address=str(node.bmc.address),
        prefix_length=_bmc_network(cluster, node.bmc).cidr.prefixlen,
        port=node.bmc.port,
        user=node.bmc.user,
        password=cluster.ssh.key.parent / node.bmc.password,
        authority=node.bmc.ca,
        secure_boot=node.install is not None and node.install.secure_boot,
    )


def _bmc_network(cluster: Cluster, bmc: Bmc) -> Network:
    for network in cluster.networks.values():
        if network.purpose is NetworkPurpose.BMC and bmc.address in network.cidr:
            return network
    raise LabError(
        f"The BMC address {bmc.address} is not in any network of purpose bmc.",
        hint="e.g. `bmc: {purpose: bmc, cidr: 10.82.0.0/24}` under `networks`",
    )


def _bmc_bridge(cluster: Cluster) -> str | None:
    """The rack's address in the network of its BMCs: where they are declared to fetch images, else a free one."""
    bmcs = [node.bmc for node in cluster.nodes if node.bmc is not None]
    if not bmcs:
        return None
    network = _bmc_network(cluster, bmcs[0])
    taken = {bmc.address for bmc in bmcs}
    server = None if cluster.boot_network is None else cluster.boot_network.bmc_server
    wanted = [address for address in (server, network.gateway) if address is not None]
    for address in (*wanted, *network.cidr.hosts()):
        if address in network.cidr and address not in taken:
            return f"{address}/{network.cidr.prefixlen}"
    raise LabError(f"No free address for the rack in {network.name}, {network.cidr}.")


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
    """GPUs that the node's tools report, if it is declared to simulate them."""
    if not node.simulates_gpus or node.sku.gpus is None:
        return None
    mig = [profile for profile, count in sorted(node.mig.items()) for _ in range(count)]
    return json.dumps({"gpus": node.sku.gpus.model_dump(mode="json"), "mig": mig})


def _bridge(cluster: Cluster, management: Network) -> IPv4Address:
    """The bridge is the management network's gateway, else where machines that boot find the control node, else free."""
    if management.gateway is not None:
        return management.gateway
    boot = cluster.boot_network
    if boot is not None and boot.network == management.name:
        return boot.server
    taken = {cluster.management_address(node) for node in cluster.nodes}
    for address in management.cidr.hosts():
        if address not in taken:
            return address
    raise LabError(f"No free address for the bridge in {management.name}, {management.cidr}.")
