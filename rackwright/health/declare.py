"""Builds the expected state of a node from the resolved cluster."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from rackwright.catalog.table_files import security_table, xid_table
from rackwright.catalog.tables import XidAction
from rackwright.health.checks.services import SLURMD
from rackwright.health.expected import (
    ANY,
    Expected,
    ExpectedAddress,
    ExpectedDrives,
    ExpectedGpus,
    ExpectedMount,
    ExpectedPorts,
)
from rackwright.health.options import HealthOptions
from rackwright.health.verdict import Action
from rackwright.model.cluster import Cluster, Network, Node
from rackwright.model.hcas import RunsSubnetManager
from rackwright.model.interfaces import DeclaresKernel, RunsDcgm, ServesTime
from rackwright.model.platforms import Capability, why_node_lacks
from rackwright.model.routes import default_networks
from rackwright.model.sku import BLUEFIELD_3, Gpus, Sku
from rackwright.model.storage import FilesystemKind, MakesFilesystems, mount_of
from rackwright.model.types import LinkKind, NetworkPurpose, NodeRole, Platform
from rackwright.workload.lookup import declared_on, kind_on, runs_jobs

_ACTIONS = {
    XidAction.RESTART_JOB: Action.RESTART_JOB,
    XidAction.RESET_GPU: Action.RESET_GPU,
    XidAction.REBOOT: Action.REBOOT,
}

AMD = "1002:"
"""The PCI vendor."""


def expected_of(cluster: Cluster, node: Node) -> Expected:
    """The expected state of a node of a cluster file; its health options are the role's, else the defaults."""
    options = options_of(node)
    manager = declared_on(node)
    networks = [(entry, cluster.networks[entry.network]) for entry in node.addresses]
    services = [*options.services, *(manager.services(node) if manager is not None else ())]
    agent = f"{manager.agent}.service" if manager is not None and runs_jobs(node) else None
    services += [agent] if agent not in (None, SLURMD) else []
    kind = kind_on(node)
    return _merge(
        _of_sku(node.sku, options, node.platform, node.mig),
        options,
        _declared_mounts(node),
        lacking={need.value: why for need in Capability if (why := why_node_lacks(node, need)) is not None},
        node=node.name,
        acs=_acs(node),
        family=node.family.name,
        os=node.os.id,
        addresses=tuple(
            ExpectedAddress(net.name, net.purpose.value, net.kind.value, str(entry.address), net.mtu)
            for entry, net in networks
        ),
        unknown_ports=_unknown_ports(node, [net for _, net in networks]),
        gateways=tuple(str(net.gateway) for net in default_networks(cluster.networks, node)),
        own_clock_stratum=time.own_clock_stratum if (time := node.offers(ServesTime)) is not None else None,
        services=tuple(sorted(set(services))),
        dcgm=engine.dcgm_host if (engine := node.offers(RunsDcgm)) is not None else None,
        slurmd=agent == SLURMD,
        manager=str(kind) if kind is not None else None,
        runs_subnet_manager=_runs_subnet_manager(cluster, node),
    )


def _runs_subnet_manager(cluster: Cluster, node: Node) -> bool:
    """Whether the node may run a subnet manager: if the cluster file declares which nodes do, those; else any node without jobs."""
    if any(other.offers(RunsSubnetManager) is not None for other in cluster.nodes):
        return node.offers(RunsSubnetManager) is not None
    return not node.holds(NodeRole.WORKER)


def _acs(node: Node) -> str:
    """From the role that declares the kernel; without that role, from the SKU's vendor."""
    kernel = node.offers(DeclaresKernel)
    off = not node.sku.keeps_acs if kernel is None else kernel.turns_acs_off(node)
    return "off" if off else "as-is"


def _unknown_ports(node: Node, networks: list[Network]) -> tuple[str, ...]:
    """RDMA kinds of the node's fabrics for which its SKU has no fabric port; a container never has one."""
    if node.platform is Platform.CONTAINER:
        return ()
    has = {nic.kind for nic in node.sku.nics if nic.purpose is NetworkPurpose.FABRIC}
    fabrics = {net.kind.port for net in networks if net.purpose is NetworkPurpose.FABRIC}
    return tuple(sorted(kind.value for kind in (fabrics & {LinkKind.INFINIBAND, LinkKind.ROCE}) - has))


def expected_of_sku(sku: Sku, options: HealthOptions | None = None) -> Expected:
    """The expected state of any node of a SKU, for documents without a cluster file."""
    options = options or HealthOptions()
    return _merge(_of_sku(sku, options, Platform.BARE_METAL, {}), options, (), services=options.services)


def options_of(node: Node) -> HealthOptions:
    """The health options of a node."""
    for options in node.options.values():
        if isinstance(options, HealthOptions):
            return options
    return HealthOptions()


def _declared_mounts(node: Node) -> tuple[ExpectedMount, ...]:
    """The filesystems that a node's roles mount, without those that it serves itself."""
    makes = node.offers(MakesFilesystems)
    found = []
    for one in node.filesystems:
        mount = mount_of(node, one)
        if mount is not None:
            sources, types = mount.sources or (mount.what,), mount.types or (mount.type,)
            found.append(
                ExpectedMount(
                    one.path,
                    sources[0] if len(sources) == 1 else None,
                    types[0] if len(types) == 1 else None,
                    writable=not one.read_only,
                    shared=True,
                    automount=one.automount,
                )
            )
        elif one.kind is FilesystemKind.LOCAL:
            made = makes.made_filesystems(node) if makes is not None else {}
            found.append(ExpectedMount(one.path, None, made.get(one.path), writable=not one.read_only))
    return tuple(found)


def _mounts(options: HealthOptions, declared: tuple[ExpectedMount, ...]) -> tuple[ExpectedMount, ...]:
    """The role's list, then what `storage:` declares besides; for a mount in both, the list wins."""
    by_target = {one.target: one for one in declared}
    listed = [
        replace(
            by_target.get(one.target, ExpectedMount(one.target)),
            source=one.source,
            type=one.type,
            writable=one.writable,
        )
        for one in options.mounts
    ]
    targets = {one.target for one in listed}
    root = () if "/" in targets else (ExpectedMount("/"),)
    return (*root, *listed, *(one for one in declared if one.target not in targets))


def _merge(
    base: Expected, options: HealthOptions, declared: tuple[ExpectedMount, ...], **fields: object
) -> Expected:
    values = {name: getattr(base, name) for name in base.__dataclass_fields__}
    values.update(
        mounts=_mounts(options, declared),
        bonds=dict(options.bonds),
        arrays=options.arrays,
        driver_version=options.driver_version,
        driver_open=options.driver_open,
        minimum_drivers=minimum_drivers(),
        hold_packages=options.hold_packages,
        kernel=options.kernel,
        kernel_arguments=options.kernel_arguments,
        pkeys=options.pkeys,
        bios=options.firmware.bios,
        gpu_vbios=options.firmware.gpu_vbios,
        nic_firmware=dict(options.firmware.nic),
        nvme_firmware=dict(options.firmware.nvme),
        limits=dict(options.limits),
        disabled=dict(options.disabled),
        **fields,
    )
    return Expected(**values)


def _of_sku(sku: Sku, options: HealthOptions, platform: Platform, mig: dict[str, int]) -> Expected:
    ports = Counter((nic.purpose.value, nic.kind.value, nic.speed_gbps) for nic in sku.nics)
    return Expected(
        node=None,
        sku=sku.name,
        platform=platform.value,
        cpu_architecture=sku.cpu_architecture,
        acs="as-is" if sku.keeps_acs else "off",
        cpu_model=sku.cpu_model,
        sockets=sku.sockets,
        cores=sku.sockets * sku.cores_per_socket,
        threads=sku.cpus,
        numa_nodes=sku.numa_nodes,
        memory_mib=sku.memory_mib,
        gpus=_gpus(sku.gpus, options, mig) if sku.gpus is not None else None,
        ports=tuple(ExpectedPorts(*kind, count) for kind, count in ports.items()),
        bluefields=dict(Counter(nic.mode or ANY for nic in sku.nics if nic.model == BLUEFIELD_3)),
        drives=tuple(ExpectedDrives(drives.count, drives.size_gb) for drives in sku.nvme),
        xids=xid_actions(),
    )


def _gpus(gpus: Gpus, options: HealthOptions, mig: dict[str, int]) -> ExpectedGpus:
    return ExpectedGpus(
        model=gpus.model,
        vendor="amd" if gpus.pci_ids and gpus.pci_ids[0].startswith(AMD) else "nvidia",
        count=gpus.count,
        memory_mib=gpus.memory_mib,
        architecture=gpus.architecture.value if gpus.architecture is not None else None,
        pci_ids=gpus.pci_ids,
        display_pci_id=gpus.display_pci_id,
        pcie_generation=gpus.pcie_generation,
        pcie_width=gpus.pcie_width,
        nvlinks=gpus.nvlinks,
        nvlink_gbs=gpus.nvlink_gbs,
        nvswitch=gpus.nvswitch.value if gpus.nvswitch is not None else None,
        power_watts=gpus.power_watts,
        mig=tuple(name for name, count in mig.items() for _ in range(count)),
        compute_mode=options.compute_mode,
    )


def xid_actions() -> dict[int, Action]:
    """Action by XID, from the catalogue; an XID whose text has the action is left out."""
    found = {}
    for xid in xid_table().rows:
        if xid.action is not XidAction.OBEY_TEXT:
            action = _ACTIONS.get(xid.action, Action.NONE)
            found[xid.code] = max(action, Action.DRAIN, key=lambda one: one.rank) if xid.drain else action
    return found


def minimum_drivers() -> dict[str, str]:
    """The lowest version of each driver branch without a published vulnerability, from the catalogue."""
    return {
        row.branch: row.version
        for row in security_table().rows
        if row.component == "nvidia-driver" and row.branch is not None
    }
