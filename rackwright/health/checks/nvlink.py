"""NVLink and its switches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rackwright.health import history, nvlink_counters
from rackwright.health.checks import scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.gpu_records import Gpu, GpuLinks
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import SEVERITY, Action, Finding, aside, fail, good, warn

RESET = "Reset all GPUs with fabricmanager, or reboot. If it recurs, open an RMA for the GPU or baseboard."
MIG = "a GPU in MIG mode does not use NVLink"
NO_CLUSTER = "00000000-0000-0000-0000-000000000000"


def in_mig(document: Document) -> set[int]:
    """GPUs in MIG mode: no instance uses NVLink, and what the driver reports about the links differs by board."""
    try:
        return {gpu.index for gpu in document.gpus.gpus if gpu.mig.current}
    except Unreadable:
        return set()


def each_links(
    document: Document, judge: Callable[[GpuLinks], Finding | None], passed: str
) -> Iterator[Finding]:
    """Judge the links of every GPU that uses them."""
    divided = in_mig(document)

    def one(gpu: GpuLinks) -> Finding | None:
        return aside(MIG) if gpu.index in divided else judge(gpu)

    if divided and len(divided) == len(document.gpus.gpus):
        yield aside(MIG)  # the output of nvidia-smi does not matter then
        return
    found = document.nvlink.gpus
    if not found:
        raise Unreadable("nvidia-smi nvlink lists no GPU")
    yield from each(found, one, passed)


def declared_links(expected: Expected) -> int:
    wanted = expected.the_gpus().nvlinks
    if wanted is None:
        raise Unreadable(f"the SKU declares no number of NVLinks for {expected.the_gpus().model}")
    return wanted


@check(
    "fabric", "Every declared NVLink of every GPU is up", reads=("nvlink",), applies=scope.nvlink,
    action=Action.RESET_GPU, remedy=RESET, source="the declared SKU; AWS: A100 12, H100, H200 and B200 18",
)  # fmt: skip
def nvlink_up(expected: Expected, document: Document) -> Iterator[Finding]:
    wanted = declared_links(expected)

    def judge(gpu: GpuLinks) -> Finding | None:
        down = [link.link for link in gpu.links if not link.gb_per_s]
        up = len(gpu.links) - len(down)
        if up >= wanted:
            return None
        which = f"down: {down}" if down else gpu.said or "the others are not listed"
        return fail(f"GPU {gpu.index} has {up} of {wanted} links up; {which}")

    yield from each_links(document, judge, f"{wanted} each")
    gpus, divided, count = document.nvlink.gpus, in_mig(document), expected.the_gpus().count
    if len(gpus) < count and not divided:
        yield fail(f"{len(gpus)} of {count} GPUs have NVLinks")


@check(
    "fabric", "Every NVLink runs at full speed", reads=("nvlink",), applies=scope.nvlink, action=Action.RESET_GPU,
    remedy=RESET, source="the declared SKU: GB/s of a GPU by its links",
)  # fmt: skip
def nvlink_speed(expected: Expected, document: Document) -> Iterator[Finding]:
    least = expected.the_gpus().link_gbs()

    def judge(gpu: GpuLinks) -> Finding | None:
        slow = [
            f"{link.link} at {link.gb_per_s:g}"
            for link in gpu.links
            if link.gb_per_s and link.gb_per_s < least
        ]
        return fail(f"GPU {gpu.index}: link {', '.join(slow)} of {least:g} GB/s") if slow else None

    yield from each_links(document, judge, f"{least:g} GB/s or more")


@check(
    "fabric", "NVLink errors do not rise", reads=("nvlink", "history"), applies=scope.nvlink,
    limits=("nvlink_errors", "nvlink_recoveries", "nvlink_replays", "nvlink_crc"), action=Action.RESET_GPU, remedy=RESET,
    source="NVIDIA DCGM health watch: increases of replays, recoveries and CRC errors; a failed link recovery is fatal",
)  # fmt: skip
def nvlink_errors(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: GpuLinks) -> Finding | None:
        if not gpu.errors:
            why = document.nvlink.errors_why or "none listed"
            raise Unreadable(f"GPU {gpu.index}: no error counters: {why}")
        return worst_of(expected, document, gpu.index, gpu.errors)

    yield from each_links(document, judge, "none")


def worst_of(expected: Expected, document: Document, index: int, errors: dict[str, int]) -> Finding | None:
    """The finding from the counters of one GPU; a fault comes before an unknown."""
    fatal = [f"{name} {errors[name]}" for name in nvlink_counters.FATAL if errors.get(name)]
    if fatal:
        return fail(f"GPU {index}: {', '.join(fatal)}")
    found: list[Finding] = []
    for name, count in sorted(errors.items()):
        if name in nvlink_counters.JUDGED:
            most = expected.limit(nvlink_counters.JUDGED[name])
            key = history.name("nvlink", index, name)
            one = history.rising(document, f"GPU {index}: {name}", key, count, most, history.HOUR)
            found.extend([one] if one is not None else [])
        elif count and not nvlink_counters.is_known(name):
            found.append(warn(f"GPU {index}: {name} {count}, an unknown counter"))
    return min(found, key=lambda one: SEVERITY.index(one.status), default=None)


@check(
    "fabric", "Every pair of GPUs is connected by NVLink", reads=("topology",), applies=scope.nvswitch,
    action=Action.RESET_GPU, remedy=RESET, source="the declared SKU; nvidia-smi topo -m",
)  # fmt: skip
def nvlink_pairs(expected: Expected, document: Document) -> Iterator[Finding]:
    wanted, matrix = f"NV{declared_links(expected)}", document.topology.matrix
    gpus = sorted(name for name in matrix if name.startswith("GPU"))
    divided = {f"GPU{index}" for index in in_mig(document)}
    odd = [
        f"{one}-{other} {matrix[one].get(other, 'nothing')}"
        for one in gpus
        for other in gpus
        if one < other and matrix[one].get(other) != wanted and not divided & {one, other}
    ]
    if len(gpus) != expected.the_gpus().count:
        yield fail(f"the matrix has {len(gpus)} of {expected.the_gpus().count} GPUs")
    if odd:
        yield fail(f"{len(odd)} pairs are not connected by {wanted}: {', '.join(odd[:6])}")
    yield good(f"{wanted} between {len(gpus)} GPUs")


@check(
    "fabric", "The NVLink fabric is initialised", reads=("gpus",), applies=scope.fabric_state, action=Action.REBOOT,
    remedy="Restart fabricmanager (on a rack system, the switch's and IMEX), then reboot.",
    source="nvidia-smi Fabric State Completed, Status Success; Azure ai-infrastructure-on-azure, gcm",
)  # fmt: skip
def fabric_state(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        state, status = gpu.fabric.state, gpu.fabric.status if gpu.fabric.state == "Completed" else ""
        if state == "Completed" and status == "Success":
            return None
        action = Action.DRAIN if state == "In Progress" else None  # it may still complete
        return fail(f"{gpu.label}: state {state}{', status ' * bool(status)}{status}", action)

    yield from each(document.gpus.some(), judge, "completed")


@check(
    "fabric", "All GPUs are in one NVLink clique", reads=("gpus",), applies=scope.fabric_state, action=Action.REBOOT,
    remedy="Restart fabricmanager; on a rack system, check which partition the node is in.",
    source="gcm and ai-infrastructure-on-azure: an all-zero ClusterUUID on NVL72 is an uninitialised fabric",
)  # fmt: skip
def fabric_clique(expected: Expected, document: Document) -> Iterator[Finding]:
    gpus = document.gpus.some()
    cliques = sorted({(gpu.fabric.cluster, gpu.fabric.clique) for gpu in gpus})
    if len(cliques) > 1:
        yield fail(f"the GPUs are in {len(cliques)} cliques: {', '.join('/'.join(one) for one in cliques)}")
    if scope.imex(expected) and any(cluster == NO_CLUSTER for cluster, _ in cliques):
        yield fail("the rack's fabric has no cluster id yet")
    yield good("/".join(cliques[0]))


@check(
    "fabric", "The NVLink fabric runs at full bandwidth", reads=("gpus",), applies=scope.fabric_state,
    action=Action.DRAIN, remedy=RESET, source="nvidia-smi fabric health, bandwidth",
)  # fmt: skip
def fabric_bandwidth(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        return None if gpu.fabric.bandwidth == "Full" else fail(f"{gpu.label}: {gpu.fabric.bandwidth}")

    yield from each(document.gpus.some(), judge, "full")


@check(
    "fabric", "The driver reports a healthy NVLink fabric", reads=("gpus",), applies=scope.fabric_state,
    action=Action.DRAIN, remedy=RESET, source="nvidia-smi fabric health, summary: Healthy, Unhealthy or Limited Capacity",
)  # fmt: skip
def fabric_health(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        return None if gpu.fabric.summary == "Healthy" else fail(f"{gpu.label}: {gpu.fabric.summary}")

    yield from each(document.gpus.some(), judge, "healthy")


SWITCHES = {"ampere": 6, "hopper": 4}
"""NVSwitches of an eight-GPU board; Blackwell's are not on the node's PCI bus as such."""


def countable_switches(expected: Expected) -> bool:
    return (
        scope.fabricmanager(expected)
        and expected.the_gpus().architecture in SWITCHES
        and expected.the_gpus().count == 8
    )


@check(
    "fabric", "Every NVSwitch is present", reads=("pci",), applies=countable_switches, needs=("hardware",),
    action=Action.REBOOT, remedy="Reboot once. If it recurs, open an RMA for the baseboard.",
    source="NVIDIA HGX A100 has 6, HGX H100 and H200 have 4; /proc/driver/nvidia-nvswitch/devices",
)  # fmt: skip
def nvswitch_count(expected: Expected, document: Document) -> Iterator[Finding]:
    wanted, found = SWITCHES[str(expected.the_gpus().architecture)], document.pci.nvswitches
    if found != wanted:
        yield fail(f"the driver has {found} of {wanted} NVSwitches")
    yield good(f"{found}")


NEAR = ("PIX", "PXB")


def one_rail_per_gpu(expected: Expected) -> bool:
    fabric = sum(
        ports.count for ports in expected.ports_of("infiniband", "roce") if ports.purpose == "fabric"
    )
    some = scope.gpus(expected) and scope.gpu_direct(expected)
    return some and fabric >= expected.the_gpus().count and not scope.imex(expected)


@check(
    "fabric", "Every GPU has a NIC behind the same PCIe switch", reads=("topology",), applies=one_rail_per_gpu,
    remedy="A NIC is missing or in the wrong slot: compare `nvidia-smi topo -m` with a healthy node.",
    source="nvidia-smi topo -m: PIX or PXB, as NCCL needs for GPUDirect RDMA",
)  # fmt: skip
def gpu_nic_affinity(expected: Expected, document: Document) -> Iterator[Finding]:
    matrix = document.topology.matrix
    gpus = sorted(name for name in matrix if name.startswith("GPU"))
    if not gpus:
        raise Unreadable("the matrix has no GPU")
    for gpu in gpus:
        paths = {path for name, path in matrix[gpu].items() if name.startswith("NIC")}
        if not paths.intersection(NEAR):
            yield fail(f"{gpu} reaches its nearest NIC by {' '.join(sorted(paths)) or 'nothing'}")
    yield good(f"{len(gpus)} GPUs")
