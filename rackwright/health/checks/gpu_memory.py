"""GPU memory: size, ECC, remapped rows and retired pages."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health import history
from rackwright.health.checks import scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.gpu_records import Gpu
from rackwright.health.registry import check, each
from rackwright.health.verdict import SEVERITY, Action, Finding, fail, warn


@check(
    "gpu", "Every GPU has its declared memory", reads=("gpus",), applies=scope.gpus, action=Action.RMA,
    limits=("gpu_memory_tolerance_percent",), remedy="RMA if the GPU has lost memory. If it was sold with this size, correct the SKU.",
)  # fmt: skip
def gpu_memory_size(expected: Expected, document: Document) -> Iterator[Finding]:
    wanted = expected.the_gpus().memory_mib
    least = wanted * (1 - expected.limit("gpu_memory_tolerance_percent") / 100)

    def judge(gpu: Gpu) -> Finding | None:
        if gpu.memory.total_mib >= least:
            return None
        return fail(f"{gpu.label} has {gpu.memory.total_mib} MiB of {wanted}")

    yield from each(document.gpus.some(), judge, f"{wanted} MiB each")


@check(
    "gpu", "All GPU memory is mapped for peers (BAR1)", reads=("gpus",), applies=scope.hbm, action=Action.DRAIN,
    remedy="Enable Above 4G decoding and Resizable BAR in the BIOS; add pci=realloc if the kernel ran out of address space.",
    source="NVIDIA GPUDirect RDMA: BAR1 must cover the memory",
)  # fmt: skip
def gpu_bar1(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        if gpu.memory.bar1_mib >= gpu.memory.total_mib:
            return None
        return fail(f"BAR1 of {gpu.label} is {gpu.memory.bar1_mib} MiB for {gpu.memory.total_mib} MiB")

    yield from each(document.gpus.some(), judge, "covers all")


@check(
    "gpu", "ECC is on and stays on", reads=("gpus",), applies=scope.gpus, action=Action.RESET_GPU,
    remedy="Run nvidia-smi -e 1, then reset the GPU.", source="Azure azure_gpu_ecc",
)  # fmt: skip
def gpu_ecc_mode(expected: Expected, document: Document) -> Iterator[Finding]:
    # On a GDDR board the owner may turn ECC off for more memory: a setting, not a fault.
    action = None if scope.hbm(expected) else Action.NONE

    def judge(gpu: Gpu) -> Finding | None:
        if not gpu.ecc.current:
            return fail(f"ECC of {gpu.label} is off", action)
        return (
            None if gpu.ecc.pending else fail(f"ECC of {gpu.label} turns off at the next reset", Action.NONE)
        )

    yield from each(document.gpus.some(), judge, "on")


@check(
    "gpu", "No GPU has uncorrected memory errors since its last reset", reads=("gpus",), applies=scope.gpus,
    action=Action.RESET_GPU, remedy="Drain the node and reset the GPU, which remaps the rows. If SRAM errors recur, open an RMA.",
    source="Azure azure_gpu_ecc: uncorrected above 0; NVIDIA GPU memory error management",
)  # fmt: skip
def gpu_ecc_uncorrected(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        sram, dram = gpu.ecc.volatile.sram_uncorrectable, gpu.ecc.volatile.dram_uncorrectable
        return fail(f"{gpu.label}: {sram} in SRAM, {dram} in DRAM") if sram or dram else None

    yield from each(document.gpus.some(), judge, "none")


@check(
    "gpu", "GPUs have few corrected memory errors", reads=("gpus", "history"), applies=scope.gpus, action=Action.DRAIN,
    limits=("gpu_ecc_sram_corrected", "gpu_ecc_dram_corrected"), remedy="Run dcgmi diag -r 3; open an RMA if the count keeps rising.",
    source="Azure azure_gpu_ecc",
)  # fmt: skip
def gpu_ecc_corrected(expected: Expected, document: Document) -> Iterator[Finding]:
    def rise_of(gpu: Gpu, memory: str, count: int) -> Finding | None:
        most = expected.limit(f"gpu_ecc_{memory.lower()}_corrected")
        key = history.name("gpu", gpu.uuid, f"{memory.lower()}_correctable")
        return history.rising(document, f"{gpu.label}: {memory}", key, count, most, history.DAY)

    def judge(gpu: Gpu) -> Finding | None:
        sram = rise_of(gpu, "SRAM", gpu.ecc.volatile.sram_correctable)
        dram = rise_of(gpu, "DRAM", gpu.ecc.volatile.dram_correctable)
        found = [one for one in (sram, dram) if one is not None]
        return min(found, key=lambda one: SEVERITY.index(one.status), default=None)

    yield from each(document.gpus.some(), judge, "few")


@check(
    "gpu", "No GPU has exceeded NVIDIA's SRAM error threshold", reads=("gpus",), applies=scope.gpus,
    action=Action.RMA, remedy="Open an RMA: the GPU itself reports that it exceeded the threshold.",
    source="NVIDIA GPU memory error management, RMA policy: SRAM Threshold Exceeded, 2 or 4 unique errors in a bank",
)  # fmt: skip
def gpu_sram_threshold(expected: Expected, document: Document) -> Iterator[Finding]:
    flagged = scope.row_remapping(expected)

    def judge(gpu: Gpu) -> Finding | None:
        if flagged and gpu.ecc.sram_threshold_exceeded:
            return fail(f"{gpu.label} has exceeded the SRAM error threshold")
        sram, dram = gpu.ecc.aggregate.sram_uncorrectable, gpu.ecc.aggregate.dram_uncorrectable
        # These counters never reset; below the threshold the board stays in service.
        return (
            warn(f"{gpu.label}: {sram} in SRAM, {dram} in DRAM over its lifetime") if sram or dram else None
        )

    yield from each(document.gpus.some(), judge, "below the threshold")


@check(
    "gpu", "No GPU has a repair pending", reads=("gpus",), applies=scope.row_remapping,
    action=Action.RESET_GPU, remedy="Drain the node, then reset the GPU: the reset activates the spare channel or TPC.",
    source="NVML repair status; NVIDIA GPU memory error management: HBM channel repair; XID 156",
)  # fmt: skip
def gpu_repair_pending(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        pending = [
            part
            for part, waits in (
                ("a memory channel", gpu.ecc.channel_repair_pending),
                ("a TPC", gpu.ecc.tpc_repair_pending),
            )
            if waits
        ]
        return fail(f"{gpu.label} needs a reset to repair {' and '.join(pending)}") if pending else None

    yield from each(document.gpus.some(), judge, "none")


def remaps_hbm(expected: Expected) -> bool:
    """Boards with stacked memory; those with GDDR print N/A, as recorded of an L40S with driver 595.91.07."""
    return scope.row_remapping(expected) and scope.hbm(expected)


@check(
    "gpu", "No GPU has unrepairable memory", reads=("gpus",), applies=remaps_hbm,
    action=Action.RMA, remedy="Open an RMA: the failed memory has no spare left.",
    source="NVML unrepairable memory flag, nvidia-smi Unrepairable Memory (580.173.02 and later)",
)  # fmt: skip
def gpu_unrepairable_memory(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        return fail(f"{gpu.label} has unrepairable memory") if gpu.ecc.unrepairable_memory else None

    yield from each(document.gpus.some(), judge, "none")


@check(
    "gpu", "Row remapping works on every GPU", reads=("gpus",), applies=scope.row_remapping, action=Action.RMA,
    remedy="Open an RMA: a row could not be remapped.", source="Azure and OCI: remapped_rows.failure above 0",
)  # fmt: skip
def gpu_rows_failure(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        return fail(f"{gpu.label} could not remap a row") if gpu.remapped.failure else None

    yield from each(document.gpus.some(), judge, "works")


@check(
    "gpu", "No GPU has a row remapping pending", reads=("gpus",), applies=scope.row_remapping, action=Action.RESET_GPU,
    remedy="Reset the GPU: the reset replaces the row.", source="Azure: remapped_rows.pending above 0",
)  # fmt: skip
def gpu_rows_pending(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: Gpu) -> Finding | None:
        return fail(f"{gpu.label} needs a reset to remap a row") if gpu.remapped.pending else None

    yield from each(document.gpus.some(), judge, "none")


@check(
    "gpu", "Few rows have been remapped", reads=("gpus",), applies=scope.row_remapping, action=Action.RMA,
    limits=("gpu_rows_remapped",), remedy="Open an RMA: the spare rows are running out.",
    source="Azure and OCI",
)  # fmt: skip
def gpu_rows_remapped(expected: Expected, document: Document) -> Iterator[Finding]:
    most = expected.limit("gpu_rows_remapped")

    def judge(gpu: Gpu) -> Finding | None:
        rows = gpu.remapped.uncorrectable
        if rows > most:
            return fail(f"{gpu.label}: {rows} rows remapped for uncorrectable errors (most {most:.0f})")
        return None

    yield from each(document.gpus.some(), judge, "few")


@check(
    "gpu", "Few pages are retired and no retirement is pending", reads=("gpus",), applies=scope.page_retirement,
    action=Action.RMA, limits=("gpu_pages_retired",), remedy="Pending: reset the GPU. Too many: open an RMA.",
    source="NVIDIA dynamic page retirement",
)  # fmt: skip
def gpu_pages_retired(expected: Expected, document: Document) -> Iterator[Finding]:
    most = expected.limit("gpu_pages_retired")

    def judge(gpu: Gpu) -> Finding | None:
        pages = gpu.retired.single_bit + gpu.retired.double_bit
        if pages >= most:
            return fail(f"{gpu.label}: {pages} pages retired (most {most:.0f})")
        return (
            fail(f"{gpu.label} needs a reset to retire a page", Action.RESET_GPU)
            if gpu.retired.pending
            else None
        )

    yield from each(document.gpus.some(), judge, "few")
