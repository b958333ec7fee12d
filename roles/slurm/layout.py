"""The declared cluster in Slurm's terms: node lines and shares. Pure functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import ReservesMemory
from rackwright.model.ranges import expand, fold
from rackwright.model.sku import Gpus
from rackwright.model.types import Platform
from rackwright.roles.slurm.entities import Partition
from rackwright.roles.slurm.node_sections import NodeSettings
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.placement import workers
from rackwright.workload.slurm.gres import gres, gres_types


@dataclass(frozen=True)
class Hardware:
    """What a node offers to Slurm, before anything is kept back."""

    sockets: int
    cores_per_socket: int
    threads_per_core: int
    memory_mib: int
    gpus: Gpus | None

    @property
    def cpus(self) -> int:
        """Hardware threads."""
        return self.sockets * self.cores_per_socket * self.threads_per_core


def hardware(node: Node) -> Hardware:
    """From the SKU; a container of the lab has the size of its `lab:` entry instead."""
    if node.platform is Platform.CONTAINER and node.lab is not None:
        return Hardware(1, node.lab.cpus, 1, node.lab.memory_mib, node.sku.gpus)
    sku = node.sku
    return Hardware(sku.sockets, sku.cores_per_socket, sku.threads_per_core, sku.memory_mib, sku.gpus)


def real_memory(node: Node, options: SlurmOptions) -> int:
    """RealMemory= of a node: its memory less the headroom and what services there hold, in MiB."""
    whole = hardware(node).memory_mib
    served = sum(one.reserved_mib(node) for one in node.options.values() if isinstance(one, ReservesMemory))
    return int(whole * (100 - options.memory_headroom_percent) / 100) - options.memory_headroom_mib - served


def features(node: Node, options: SlurmOptions) -> tuple[str, ...]:
    """Feature= of a node: its SKU, its rack and what is declared for it."""
    words = [node.sku.name, *([f"rack-{node.rack}"] if node.rack else [])]
    declared = [word for one in _settings_of(node, options) for word in one.features]
    return tuple(dict.fromkeys([*(re.sub(r"[^A-Za-z0-9_.-]", "-", word) for word in words), *declared]))


def weight(node: Node, options: SlurmOptions) -> int:
    """Weight= of a node: declared, or one more than its GPUs."""
    declared = (one.weight for one in _settings_of(node, options) if one.weight is not None)
    gpus = hardware(node).gpus
    return next(declared, 1 + (gpus.count if gpus else 0))


def _settings_of(node: Node, options: SlurmOptions) -> list[NodeSettings]:
    return [one for text, one in options.node_settings.items() if node.name in _names(text)]


@cache
def _names(text: str) -> frozenset[str]:
    return frozenset(expand(text))


def node_parameters(node: Node, options: SlurmOptions) -> str:
    """Everything of a NodeName line but the name and the address."""
    has_ = hardware(node)
    pairs: list[tuple[str, object]] = [
        ("CPUs", has_.cpus),
        ("Sockets", has_.sockets),
        ("CoresPerSocket", has_.cores_per_socket),
        ("ThreadsPerCore", has_.threads_per_core),
        ("RealMemory", real_memory(node, options)),
        ("MemSpecLimit", options.mem_spec_limit_mib or None),
        ("CoreSpecCount", options.core_spec_count or None),
        ("Gres", gres(node)),
        ("Feature", ",".join(features(node, options))),
        ("Weight", heavy if (heavy := weight(node, options)) > 1 else None),
    ]
    return " ".join(f"{key}={value}" for key, value in pairs if value is not None)


def node_lines(cluster: Cluster, options: SlurmOptions, domain: str | None = None) -> tuple[str, ...]:
    """NodeName lines: one per run of nodes with equal parameters and consecutive names and addresses.

    `domain`: nodes answer at their names in it, and not at their addresses.
    """
    runs: list[list[Node]] = []
    for node in workers(cluster):
        last = runs[-1][-1] if runs else None
        if last and _follows(cluster, last, node) and _same(last, node, options):
            runs[-1].append(node)
        else:
            runs.append([node])
    return tuple(
        f"NodeName={fold(node.name for node in run)} "
        f"NodeAddr={_addresses(cluster, run, domain)} "
        f"{node_parameters(run[0], options)}"
        for run in runs
    )


def _same(left: Node, right: Node, options: SlurmOptions) -> bool:
    return node_parameters(left, options) == node_parameters(right, options)


def _follows(cluster: Cluster, left: Node, right: Node) -> bool:
    """Whether both name and address go up by one, so that one range describes both unambiguously."""
    (stem_a, number_a, width_a), (stem_b, number_b, width_b) = _split(left.name), _split(right.name)
    if number_a is None or number_b is None:
        return False
    names = (stem_a, width_a, number_a + 1) == (stem_b, width_b, number_b)
    before, after = cluster.management_address(left), cluster.management_address(right)
    return names and before + 1 == after and str(before).split(".")[:3] == str(after).split(".")[:3]


def _split(name: str) -> tuple[str, int | None, int]:
    found = re.fullmatch(r"(.*?)(\d+)", name)
    return (found[1], int(found[2]), len(found[2])) if found else (name, None, 0)


def _addresses(cluster: Cluster, run: list[Node], domain: str | None) -> str:
    if domain is not None:
        return f"{fold(node.name for node in run)}.{domain}"
    return _fold_addresses([cluster.management_address(node) for node in run])


def _fold_addresses(addresses: list[IPv4Address]) -> str:
    if len(addresses) == 1:
        return str(addresses[0])
    stem, _, first = str(addresses[0]).rpartition(".")
    return f"{stem}.[{first}-{str(addresses[-1]).rpartition('.')[2]}]"


def partition_nodes(cluster: Cluster, partition: Partition) -> tuple[Node, ...]:
    """Workers of a partition; `problems` reports names that are not workers."""
    known = workers(cluster)
    if partition.nodes is None:
        return known
    wanted = set(expand(partition.nodes))
    return tuple(node for node in known if node.name in wanted)


def partition_of(cluster: Cluster, options: SlurmOptions, node: Node) -> str | None:
    """A partition that takes jobs and has this node, the default before others; None if there is none."""
    found = [
        name
        for name, partition in options.partitions.items()
        if partition.state == "UP" and node in partition_nodes(cluster, partition)
    ]
    found.sort(key=lambda name: not options.partitions[name].default)
    return found[0] if found else None


@dataclass(frozen=True)
class Shares:
    """Default memory and CPUs for each CPU or GPU of a partition."""

    mem_per_cpu: int | None = None
    mem_per_gpu: int | None = None
    cpu_per_gpu: int | None = None


def shares(cluster: Cluster, options: SlurmOptions, partition: Partition) -> Shares:
    """Declared defaults, or the share on the partition's smallest node. Slurm allows one memory default."""
    nodes = partition_nodes(cluster, partition)
    gpus = [node for node in nodes if hardware(node).gpus]
    by_gpu = partition.def_mem_per_cpu_mib is None and bool(nodes) and len(gpus) == len(nodes)
    if not by_gpu:
        least = min((usable(node, options) // hardware(node).cpus for node in nodes), default=None)
        return Shares(
            mem_per_cpu=None if partition.def_mem_per_gpu_mib else partition.def_mem_per_cpu_mib or least,
            mem_per_gpu=partition.def_mem_per_gpu_mib,
            cpu_per_gpu=partition.def_cpu_per_gpu,
        )
    return Shares(
        mem_per_gpu=partition.def_mem_per_gpu_mib
        or min(usable(node, options) // gpu_count(node) for node in nodes),
        cpu_per_gpu=partition.def_cpu_per_gpu
        or min(job_cpus(node, options) // gpu_count(node) for node in nodes)
        or None,  # more GPUs than CPUs: a lab node
    )


def least_mem_per_cpu(cluster: Cluster, options: SlurmOptions) -> int | None:
    """A CPU's share of memory on the smallest worker; None without workers.

    Without it, a job that asks for CPUs alone in a partition with DefMemPerGPU gets all memory of
    its nodes (seen with 24.11).
    """
    return min((usable(node, options) // hardware(node).cpus for node in workers(cluster)), default=None)


def usable(node: Node, options: SlurmOptions) -> int:
    """Memory that jobs may have, in MiB."""
    return real_memory(node, options) - options.mem_spec_limit_mib


def simulated_gpus(node: Node) -> int:
    """GPUs (or MIG instances) of a container's SKU, which are only counted."""
    return gpu_count(node) if node.platform is Platform.CONTAINER else 0


def gpu_count(node: Node) -> int:
    """GPUs or MIG instances that jobs may ask for."""
    return sum(gres_types(node).values())


def job_cpus(node: Node, options: SlurmOptions) -> int:
    """Hardware threads that jobs may have."""
    has_ = hardware(node)
    return has_.cpus - options.core_spec_count * has_.threads_per_core
