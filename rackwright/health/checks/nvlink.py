"""NVLink and its switches."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health.checks import scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.gpu_records import Gpu, GpuLinks
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import Action, Finding, fail, good

RESET = "Reset all GPUs with fabricmanager, or reboot; again: RMA of the GPU or baseboard."
NO_CLUSTER = "00000000-0000-0000-0000-000000000000"


def links_of(document: Document) -> list[GpuLinks]:
    found = document.nvlink.gpus
    if not found:
        raise Unreadable("nvidia-smi nvlink names no GPU")
    return found


def declared_links(expected: Expected) -> int:
    wanted = expected.the_gpus().nvlinks
    if wanted is None:
        raise Unreadable(f"the SKU does not say how many NVLinks a {expected.the_gpus().model} has")
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
        return fail(f"GPU {gpu.index} has {up} of {wanted} links up; down: {down or 'not listed'}")

    gpus = links_of(document)
    if len(gpus) < expected.the_gpus().count:
        yield fail(f"{len(gpus)} of {expected.the_gpus().count} GPUs have NVLinks")
    yield from each(gpus, judge, f"{wanted} each")


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

    yield from each(links_of(document), judge, f"{least:g} GB/s or more")


@check(
    "fabric", "No NVLink counts errors", reads=("nvlink",), applies=scope.nvlink, limits=("nvlink_errors",),
    action=Action.RESET_GPU, remedy=RESET, source="facebookresearch gcm, check_dcgmi nvlink; ClusterMAX",
)  # fmt: skip
def nvlink_errors(expected: Expected, document: Document) -> Iterator[Finding]:
    most, section = expected.limit("nvlink_errors"), document.nvlink

    def judge(gpu: GpuLinks) -> Finding | None:
        if not gpu.errors:
            raise Unreadable(f"GPU {gpu.index}: no error counters: {section.errors_why or 'none listed'}")
        bad = [f"{name} {count}" for name, count in sorted(gpu.errors.items()) if count > most]
        return fail(f"GPU {gpu.index}: {', '.join(bad)}") if bad else None

    yield from each(links_of(document), judge, "none")


@check(
    "fabric", "Every pair of GPUs is connected by NVLink", reads=("topology",), applies=scope.nvswitch,
    action=Action.RESET_GPU, remedy=RESET, source="the declared SKU; nvidia-smi topo -m",
)  # fmt: skip
def nvlink_pairs(expected: Expected, document: Document) -> Iterator[Finding]:
    wanted, matrix = f"NV{declared_links(expected)}", document.topology.matrix
    gpus = sorted(name for name in matrix if name.startswith("GPU"))
    odd = [
        f"{one}-{other} {matrix[one].get(other, 'nothing')}"
        for one in gpus
        for other in gpus
        if one < other and matrix[one].get(other) != wanted
    ]
    if len(gpus) != expected.the_gpus().count:
        yield fail(f"the matrix has {len(gpus)} of {expected.the_gpus().count} GPUs")
    if odd:
        yield fail(f"{len(odd)} pairs are not connected by {wanted}: {', '.join(odd[:6])}")
    yield good(f"{wanted} between {len(gpus)} GPUs")


@check(
    "fabric", "The NVLink fabric is set up", reads=("gpus",), applies=scope.fabric_state, action=Action.REBOOT,
    remedy="Restart fabricmanager (rack: the switch's and IMEX), then reboot.",
    source="nvidia-smi Fabric State Completed, Status Success; Azure ai-infrastructure-on-azure, gcm",
)  # fmt: skip
def fabric_state(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        state, status = gpu.fabric.state, gpu.fabric.status
        if state == "Completed" and status == "Success":
            return None
        return fail(f"{gpu.label}: state {state}, status {status}")

    yield from each(document.gpus.some(), judge, "completed")


@check(
    "fabric", "All GPUs are in one NVLink clique", reads=("gpus",), applies=scope.fabric_state, action=Action.REBOOT,
    remedy="Restart fabricmanager or, in a rack, see which partition the node is in.",
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
    "fabric", "The NVLink fabric has its full bandwidth", reads=("gpus",), applies=scope.fabric_state,
    action=Action.DRAIN, remedy=RESET, source="nvidia-smi fabric health, bandwidth",
)  # fmt: skip
def fabric_bandwidth(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        return None if gpu.fabric.bandwidth == "Full" else fail(f"{gpu.label}: {gpu.fabric.bandwidth}")

    yield from each(document.gpus.some(), judge, "full")


SWITCHES = {"ampere": 6, "hopper": 4}
"""NVSwitches of an eight-GPU board; Blackwell's are not on the node's PCI bus as such."""


def countable_switches(expected: Expected) -> bool:
    return (
        scope.fabricmanager(expected)
        and expected.the_gpus().architecture in SWITCHES
        and expected.the_gpus().count == 8
    )


@check(
    "fabric", "Every NVSwitch is there", reads=("pci",), applies=countable_switches, needs=("hardware",),
    action=Action.REBOOT, remedy="Reboot once; again: RMA of the baseboard.",
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
    return scope.gpu_direct(expected) and fabric >= expected.the_gpus().count and not scope.imex(expected)


@check(
    "fabric", "Every GPU has a NIC behind the same PCIe switch", reads=("topology",), applies=one_rail_per_gpu,
    remedy="A NIC is missing or trained elsewhere: compare `nvidia-smi topo -m` with a good node.",
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
