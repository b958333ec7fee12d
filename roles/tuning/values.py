"""Kernel values by kind of node, and which of them are per container.

Sources of the values: the profiles latency-performance, throughput-performance, hpc-compute and
accelerator-performance of tuned 2.22; Azure's HPC images (hpc-tuning.sh and the GB200
customisation); Slurm's guides for large and high-throughput clusters. Read 2026-11.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability, has
from rackwright.model.sku import Sku
from rackwright.model.types import LinkKind, NetworkPurpose, NodeRole
from rackwright.roles.tuning.options import TuningOptions

MANAGER_MEMLOCK_READ = "systemctl show --property=DefaultLimitMEMLOCK --value"

_EVERYWHERE = {
    # of the kernel log: users read it for addresses, and write names of programs into it (sysctl/kernel.rst)
    "kernel.dmesg_restrict": "1",
    "vm.swappiness": "10",  # latency-performance
    "net.core.somaxconn": "4096",  # Slurm: accept bursts; the kernel's own default since 5.4
    # Azure: a flat network of thousands of nodes overflows the stock ARP table (128/512/1024)
    "net.ipv4.neigh.default.gc_thresh1": "4096",
    "net.ipv4.neigh.default.gc_thresh2": "8192",
    "net.ipv4.neigh.default.gc_thresh3": "16384",
}
_STORAGE = {  # throughput-performance: let write-back batch up
    "vm.dirty_ratio": "40",
    "vm.dirty_background_ratio": "10",
}
_HEAD = {
    "net.ipv4.tcp_max_syn_backlog": "4096",  # Slurm: as many as somaxconn lets through
    "net.ipv4.tcp_syncookies": "1",
}
_WORKER = {
    "kernel.numa_balancing": "0",  # hpc-compute: unmapping pages stalls pinned and GPU buffers
    # the sources disagree, so as the kernel has it: Linux Documentation/admin-guide/sysctl/vm.rst has 0 for loads that
    # profit from the page cache; hpc-compute and Azure set 1 for strictly partitioned memory (read 2026-11-23)
    "vm.zone_reclaim_mode": "0",
    "vm.max_map_count": "1048576",  # Azure: large runtimes map many regions
    "vm.dirty_ratio": "10",  # latency-performance: no write-back bursts under a job
    "vm.dirty_background_ratio": "3",
    "net.core.busy_read": "50",  # hpc-compute
    "net.core.busy_poll": "50",
    "net.ipv4.tcp_fastopen": "3",  # hpc-compute
}
# hpc-compute. The kernel's own grows with the root of memory (mm/page_alloc.c, calculate_min_free_kbytes) and is 185363
# on 2 TiB: a lower one would take from the reserve, so it is only ever raised.
_LARGE_MEMORY = {"vm.min_free_kbytes": "135168"}
_LARGE_MEMORY_MIB = 32 * 1024  # 132 MiB kept free is then less than half a percent
_FAST_ETHERNET = {  # Azure GB200 and ESnet's 100G hosts agree on the maxima; initial sizes as ESnet's
    "net.core.rmem_max": "2147483647",
    "net.core.wmem_max": "2147483647",
    "net.ipv4.tcp_rmem": "4096 131072 1073741824",
    "net.ipv4.tcp_wmem": "4096 16384 1073741824",
}
_FAST_GBPS = 100

KEYS: tuple[str, ...] = tuple(
    sorted({*_EVERYWHERE, *_STORAGE, *_HEAD, *_WORKER, *_LARGE_MEMORY, *_FAST_ETHERNET})
)
"""Every key this role may choose a value for."""

OF_THE_NETWORK_NAMESPACE: tuple[str, ...] = (
    "net.core.somaxconn",
    "net.ipv4.conf.*",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_wmem",
    "net.ipv6.conf.*",
)
"""Per-container keys: each network namespace has its copy, and root in it may set it.

Tried key by key in a systemd-nspawn container with a network namespace (Linux 6.18, 2026-11).
Everything else belongs to the machine, in one of three ways:
- `vm.*`, `kernel.*`, `fs.*`, `user.*`: one value for the whole machine; read-only in a container.
- `net.core.rmem_max`, `net.core.wmem_max`: shown in a container, settable in the first network
  namespace only (EACCES even for root with CAP_NET_ADMIN).
- `net.core.busy_*`, `net.ipv4.neigh.default.gc_thresh*`: the table behind them is shared, and the
  keys do not exist in a container at all.
"""


def is_of_the_network_namespace(key: str) -> bool:
    """Whether this key is per container."""
    name = key.replace("/", ".")
    return any(fnmatchcase(name, pattern) for pattern in OF_THE_NETWORK_NAMESPACE)


def in_scope(node: Node, key: str) -> bool:
    """Whether this node's declared platform can have a separate value for a key."""
    return has(node.platform, Capability.KERNEL) or is_of_the_network_namespace(key)


def sysctls(node: Node, options: TuningOptions) -> dict[str, str]:
    """Every kernel value declared for a node, in the order of their keys; in scope or not.

    Where a node has several roles, the worker's values win: jobs run there.
    """
    values = dict(_EVERYWHERE)
    if node.holds(NodeRole.STORAGE):
        values |= _STORAGE
    if node.holds(NodeRole.HEAD):
        values |= _HEAD
    if node.holds(NodeRole.WORKER):
        values |= _WORKER
    if node.sku.memory_mib >= _LARGE_MEMORY_MIB and node.holds(NodeRole.WORKER):
        values |= _LARGE_MEMORY
    if _fast_ethernet(node.sku):
        values |= _FAST_ETHERNET
    values |= {key: " ".join(str(value).split()) for key, value in options.sysctl.items()}
    return dict(sorted(values.items()))


def at_least(node: Node, options: TuningOptions) -> dict[str, str]:
    """Those of `sysctls` that are raised and never lowered; a value that the site declares is set as it is."""
    declared = sysctls(node, options)
    return {key: declared[key] for key in _LARGE_MEMORY if key in declared and key not in options.sysctl}


def _fast_ethernet(sku: Sku) -> bool:
    """Whether TCP on this node runs over a fast port; the fabric carries RDMA, not TCP."""
    return any(
        nic.purpose is not NetworkPurpose.FABRIC
        and nic.kind is not LinkKind.INFINIBAND
        and nic.speed_gbps >= _FAST_GBPS
        for nic in sku.nics
    )


def governor(options: TuningOptions) -> str:
    """The CPU frequency governor."""
    return options.governor or "performance"


def idle_states(node: Node, options: TuningOptions) -> str:
    """How deep an idle core may sleep: shallow, moderate or all."""
    if options.idle_states is not None:
        return options.idle_states
    if not node.holds(NodeRole.WORKER):
        return "all"
    return "moderate" if node.sku.gpus is not None else "shallow"


def swap_off(node: Node, options: TuningOptions) -> bool:
    """Whether the node must not swap."""
    return options.swap == "off" or (options.swap is None and node.holds(NodeRole.WORKER))


def process_limit(node: Node, options: TuningOptions) -> int | str | None:
    """Processes of a user; None: as the distribution has it."""
    if options.limits.nproc is not None:
        return options.limits.nproc
    only_login = node.roles == frozenset({NodeRole.LOGIN})
    return None if only_login else "unlimited"
