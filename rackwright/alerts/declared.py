"""The declaration as series, so that rules compare with the cluster file and not with what a node reports.

Each is a rule for one SKU, derived from `up`, which also exists for a node that is down.
"""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.alerts.promql import PLACE
from rackwright.alerts.rule import Recording, RuleGroup
from rackwright.alerts.text import number
from rackwright.model.cluster import Cluster
from rackwright.model.interfaces import ChecksNodeHealth, RunsWorkloadManager
from rackwright.model.sku import Sku
from rackwright.model.types import LinkKind, NetworkPurpose, NodeRole

_JOBS = frozenset({"node"})
_MIB = 1 << 20


def declared_groups(cluster: Cluster, *, carbon_grams_per_kwh: float | None = None) -> tuple[RuleGroup, ...]:
    """The recording rules of a cluster."""
    skus = {node.sku.name: node.sku for node in cluster.nodes}
    rules = [rule for _, sku in sorted(skus.items()) for rule in _of(sku)]
    rules += [*_health_checks(cluster), *_mounts(cluster)]
    if carbon_grams_per_kwh is not None:
        rules.append(
            Recording(
                "rackwright_declared_carbon_grams_per_kwh",
                f"vector({number(carbon_grams_per_kwh)})",
                "Grams of CO2 equivalent per kWh, as declared.",
                frozenset(),
            )
        )
    return (RuleGroup("declared", tuple(rules)),)


def _of(sku: Sku) -> Iterator[Recording]:
    for name, value, about in _figures(sku):
        yield Recording(f"rackwright_declared_{name}", f"{_nodes('sku', sku.name)} + {value}", about, _JOBS)


def _nodes(label: str, value: str, matcher: str = "=") -> str:
    """0 for each node whose target has this label, whether or not it answers."""
    return f'max by ({PLACE}) (up{{job="node",{label}{matcher}"{value}"}}) * 0'


def _figures(sku: Sku) -> Iterator[tuple[str, int, str]]:
    yield "node", 1, "1 for each declared node: carries rack, leaf and SKU to series that name a node alone."
    yield "cpus", sku.cpus, "Hardware threads."
    yield "memory_bytes", sku.memory_mib * _MIB, "Installed memory."
    if sku.gpus is not None:
        yield "gpus", sku.gpus.count, "GPUs."
        yield "gpu_memory_bytes", sku.gpus.memory_mib * _MIB, "Memory of one GPU."
        if sku.gpus.power_watts is not None:
            yield "gpu_power_watts", sku.gpus.power_watts, "Maximum power of one GPU."
        if sku.gpus.pcie_width is not None:
            yield "gpu_pcie_lanes", sku.gpus.pcie_width, "PCIe lanes of one GPU."
        if sku.gpus.pcie_generation is not None:
            yield "gpu_pcie_generation", sku.gpus.pcie_generation, "PCIe generation of one GPU."
    yield from _fabric_figures(sku)


def _fabric_figures(sku: Sku) -> Iterator[tuple[str, int, str]]:
    """Storage's InfiniBand ports count too: node_exporter shows them beside the fabric's. Its RoCE ports may be bonded to one device."""
    fabric = [nic.speed_gbps for nic in sku.nics if nic.purpose is NetworkPurpose.FABRIC and nic.kind.rdma]
    if fabric:
        others = [
            nic.speed_gbps
            for nic in sku.nics
            if nic.purpose is not NetworkPurpose.FABRIC and nic.kind is LinkKind.INFINIBAND
        ]
        yield "fabric_ports", len(fabric + others), "RDMA ports of the fabric, and other InfiniBand ports."
        slowest = min(fabric)
        fast = sum(speed >= slowest for speed in fabric + others)
        yield "fabric_fast_ports", fast, "Those of them that are not slower than the fabric's."
        yield "fabric_port_bytes_per_second", slowest * 10**9 // 8, "Speed of the slowest port of the fabric."


def _health_checks(cluster: Cluster) -> Iterator[Recording]:
    """The workload manager starts the checks, so that they run on workers alone."""
    names = {
        node.name
        for node in cluster.holding(NodeRole.WORKER)
        if node.offers(ChecksNodeHealth) is not None and node.offers(RunsWorkloadManager) is not None
    }
    for nodes in _selected(cluster, names):
        yield Recording(
            "rackwright_declared_health_check", f"{nodes} + 1", "1 for each node that checks itself.", _JOBS
        )


def _mounts(cluster: Cluster) -> Iterator[Recording]:
    """1 for each filesystem that is always mounted; an automounted one may be unmounted until first use."""
    users: dict[str, set[str]] = {}
    for node in cluster.nodes:
        for filesystem in node.filesystems:
            if not (filesystem.automount and filesystem.kind.shared):
                users.setdefault(filesystem.path, set()).add(node.name)
    for path, names in sorted(users.items()):
        for nodes in _selected(cluster, names):
            yield Recording(
                "rackwright_declared_mount",
                f"{nodes} + 1",
                "1 for each filesystem that is always mounted, by mountpoint.",
                _JOBS,
                {"mountpoint": path},
            )


def _selected(cluster: Cluster, names: set[str]) -> Iterator[str]:
    """A matcher for these nodes; uses the SKU if it covers all its nodes, because a thousand names match slowly."""
    rest = set(names)
    for sku in sorted({node.sku.name for node in cluster.nodes}):
        of_sku = {node.name for node in cluster.nodes if node.sku.name == sku}
        if of_sku <= names:
            rest -= of_sku
            yield _nodes("sku", sku)
    if rest:
        yield _nodes("node", "|".join(name.replace(".", "[.]") for name in sorted(rest)), "=~")
