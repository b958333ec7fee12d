"""AMD GPUs: all there, the declared ones, their memory, links and temperature."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health import history
from rackwright.health.amd_records import AmdGpu, AmdLinks
from rackwright.health.checks import scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import Action, Finding, fail, good, warn

RESEAT = "Reboot once. If it recurs, reseat the module or open an RMA."
COOLING = "Check fans, inlet temperature and dust (liquid cooling: the flow). If it is one GPU alone, check its heat sink."
NODE_SCRAPER = "AMD node-scraper"
BAD_PAGES_WARN = 0.9
"""The share of the threshold from which the amdgpu driver warns."""


def whole_gpus(document: Document) -> list[AmdGpu]:
    found = document.amd_gpus.whole_gpus()
    if not found:
        raise Unreadable("amd-smi lists no GPU")
    return found


@check(
    "gpu", "amd-smi lists every declared AMD GPU", reads=("amd_gpus",), applies=scope.amd, action=Action.REBOOT,
    remedy=RESEAT,
)  # fmt: skip
def amd_gpu_count(expected: Expected, document: Document) -> Iterator[Finding]:
    declared, found = expected.the_gpus().count, len({gpu.address for gpu in document.amd_gpus.whole_gpus()})
    if found != declared:
        yield fail(f"amd-smi lists {found} of {declared} declared GPUs")
    yield good(f"{found} GPUs")


@check(
    "gpu", "Every AMD GPU is the declared model", reads=("amd_gpus",), applies=scope.amd,
    remedy="Compare the declared SKU with what was delivered.",
)  # fmt: skip
def amd_gpu_model(expected: Expected, document: Document) -> Iterator[Finding]:
    wanted = expected.the_gpus()
    ids = {one.split(":")[-1] for one in wanted.pci_ids}

    def judge(gpu: AmdGpu) -> Finding | None:
        if gpu.pci_id in ids:
            return None
        return fail(f"{gpu.label} is {gpu.name} (1002:{gpu.pci_id}), declared {wanted.model}")

    yield from each(whole_gpus(document), judge, f"all {wanted.model}")


@check(
    "gpu", "Every AMD GPU has its declared memory", reads=("amd_gpus",), applies=scope.amd, action=Action.RMA,
    limits=("gpu_memory_tolerance_percent",), remedy="RMA if the GPU has lost memory. If it was sold with this size, correct the SKU.",
)  # fmt: skip
def amd_gpu_memory(expected: Expected, document: Document) -> Iterator[Finding]:
    wanted = expected.the_gpus().memory_mib
    least = wanted * (1 - expected.limit("gpu_memory_tolerance_percent") / 100)

    def judge(gpu: AmdGpu) -> Finding | None:
        return None if gpu.memory_mib >= least else fail(f"{gpu.label} has {gpu.memory_mib} MiB of {wanted}")

    yield from each(whole_gpus(document), judge, f"{wanted} MiB each")


@check(
    "gpu", "No AMD GPU has counted an uncorrectable error in the last day",
    reads=("amd_gpus", "amd_metrics", "history"), applies=scope.amd, needs=("hardware",), action=Action.RESET_GPU,
    remedy="Drain and reset the GPUs (`amd-smi reset -G`) or reboot; if the same GPU fails again, open an RMA.",
    source=f"{NODE_SCRAPER}: uncorrectable ECC is an error",
)  # fmt: skip
def amd_ecc_uncorrected(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: AmdGpu) -> Finding | None:
        counted = document.amd_metrics.of(gpu)
        return history.rising(
            document, f"{gpu.label}: uncorrectable errors", history.name("amd", gpu.index, "uncorrectable"),
            counted.uncorrectable, 0, history.DAY,
        )  # fmt: skip

    yield from each(whole_gpus(document), judge, "none")


@check(
    "gpu", "No AMD GPU has bad pages that are still in use, or too many retired ones",
    reads=("amd_gpus", "amd_bad_pages"), applies=scope.amd, needs=("hardware",), action=Action.RESET_GPU,
    remedy="Pending pages: drain and reset the GPUs, or reboot; that retires them. At the threshold: open an RMA.",
    source="OCI oci-hpc check_bad_pages: pending is an error; Linux amdgpu: R, P and F pages, replace at the threshold",
)  # fmt: skip
def amd_bad_pages(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: AmdGpu) -> Finding | None:
        bad, most = document.amd_bad_pages.of(gpu), gpu.bad_page_threshold
        if most and bad.retired >= most:
            return fail(
                f"{gpu.label}: {bad.retired} pages retired, the GPU's threshold is {most}", Action.RMA
            )
        if bad.unreservable:
            return fail(f"{gpu.label}: {bad.unreservable} bad pages could not be retired", Action.REBOOT)
        if bad.pending:
            return fail(f"{gpu.label}: {bad.pending} bad pages pending retirement")
        if most and bad.retired >= BAD_PAGES_WARN * most:
            return warn(f"{gpu.label}: {bad.retired} pages retired, the GPU's threshold is {most}")
        return None

    yield from each(whole_gpus(document), judge, "none")


@check(
    "gpu", "Every AMD GPU and its memory are well below their slowdown temperatures",
    reads=("amd_gpus", "amd_metrics"), applies=scope.amd, needs=("hardware",),
    limits=("gpu_margin_warn_c", "gpu_margin_fail_c"), remedy=COOLING, source="the slowdown limits amd-smi prints",
)  # fmt: skip
def amd_temperature(expected: Expected, document: Document) -> Iterator[Finding]:
    least, enough = expected.limit("gpu_margin_fail_c"), expected.limit("gpu_margin_warn_c")

    def judge(gpu: AmdGpu) -> Finding | None:
        now = document.amd_metrics.of(gpu)
        close = min(gpu.hotspot_limit_c - now.hotspot_c, gpu.memory_limit_c - now.memory_c)
        said = (
            f"{gpu.label}: hotspot {now.hotspot_c} C of {gpu.hotspot_limit_c} C, "
            f"memory {now.memory_c} C of {gpu.memory_limit_c} C"
        )
        if close <= least:
            return fail(said)
        return warn(said) if close <= enough else None

    yield from each(whole_gpus(document), judge, "cool")


@check(
    "gpu", "Every AMD GPU uses its full PCIe link", reads=("amd_gpus", "amd_metrics"), applies=scope.amd,
    needs=("hardware",), action=Action.REBOOT, remedy=RESEAT,
    source=f"the GPU's own maximum; {NODE_SCRAPER}: another width or speed is an error",
)  # fmt: skip
def amd_pcie_link(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(gpu: AmdGpu) -> Finding | None:
        now, lanes = document.amd_metrics.of(gpu), expected.the_gpus().pcie_width or gpu.width_max
        if now.width >= lanes and now.speed_gts >= gpu.speed_max_gts:
            return None
        return fail(
            f"{gpu.label}: x{now.width} at {now.speed_gts:g} GT/s of x{lanes} at {gpu.speed_max_gts:g} GT/s"
        )

    yield from each(whole_gpus(document), judge, "full")


@check(
    "fabric", "Every AMD GPU reaches every other over XGMI", reads=("amd_topology",), applies=scope.xgmi,
    needs=("hardware",), action=Action.REBOOT, remedy=RESEAT + " `amd-smi xgmi -l` shows the links that are down.",
    source="AMD CDNA 3: the eight GPUs of a board are connected to each other directly",
)  # fmt: skip
def amd_xgmi(expected: Expected, document: Document) -> Iterator[Finding]:
    declared = expected.the_gpus().count
    gpus = [gpu for gpu in document.amd_topology.gpus if gpu.address.endswith(".0")]
    if len(gpus) != declared:
        yield fail(f"amd-smi topology lists {len(gpus)} of {declared} declared GPUs")

    def judge(gpu: AmdLinks) -> Finding | None:
        peers = [one for one in gpu.links if one.address.endswith(".0") and one.address != gpu.address]
        away = [
            f"{one.address} ({one.type}, {one.status})" for one in peers if not is_xgmi(one.type, one.status)
        ]
        if len(peers) < declared - 1:
            return fail(f"{gpu.address} is connected to {len(peers)} of {declared - 1} other GPUs")
        return fail(f"{gpu.address} has no XGMI link to {', '.join(away)}") if away else None

    yield from each(gpus, judge, f"{declared} GPUs")


def is_xgmi(kind: str, status: str) -> bool:
    return kind == "XGMI" and status == "ENABLED"


@check(
    "os", "The amdgpu driver is loaded", reads=("driver",), needs=("kernel-modules",), applies=scope.amd,
    action=Action.REBOOT, remedy="Run modprobe amdgpu; if it fails, dmesg has the reason. Secure Boot requires signed modules.",
    source="AMD ROCm installation guide",
)  # fmt: skip
def amd_driver(expected: Expected, document: Document) -> Iterator[Finding]:
    if "amdgpu" not in document.driver.modules:
        yield fail("the module amdgpu is not loaded")
    yield good("amdgpu")


@check(
    "gpu", "The kernel logged no failure of an AMD GPU", reads=("kernel_log",), applies=scope.amd, needs=("gpu",),
    action=Action.REBOOT, remedy="Reboot: the GPU could not be reset. If it recurs, or with too many bad pages, open an RMA.",
    source=f"{NODE_SCRAPER}, dmesg analyzer; Linux amdgpu: RAS and reset messages",
)  # fmt: skip
def amd_gpu_log(expected: Expected, document: Document) -> Iterator[Finding]:
    for entry in document.kernel_log.of("amd_failed")[-4:]:
        yield fail(f"{entry.device}: {entry.message}")
    for entry in document.kernel_log.of("amd_worn"):
        yield fail(f"{entry.device}: {entry.message}", Action.RMA)
    yield good("none")
