"""Kernel log errors besides GPUs: processors, memory, PCIe, drives, filesystems, links.

Only declared parts can take a node out of service: its GPUs, fabric NICs, NVMe drives and filesystems. A log
that was captured alone does not identify its devices; each then counts as a declared one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rackwright.health.checks import scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected, ExpectedMount
from rackwright.health.kernel_records import LogEntry
from rackwright.health.registry import check
from rackwright.health.verdict import Action, Finding, fail, good, warn

RESEAT = "Reseat the board or cable. If the same slot fails with another board, the slot is at fault."
DIMM = "Reseat the DIMM that the firmware names. If it recurs, replace it."
NO_DRIVE = re.compile(r"(?:sr|fd|nbd|loop|zram|ram|rbd|gpd|mtd)\d")
"""Block devices that are not drives of the node: CD-ROM, floppy, network, memory, GRAID's own."""
NVME = re.compile(r"nvme\d+")
SERVED = ("nfs", "lustre")
FULL_WIDTH = 16
LINK_DRIVERS = ("pci", "nvidia", "mlx5_core", "amdgpu")
"""Drivers that report a narrow link of a GPU or fabric NIC; `pci` does so before any driver loads."""


def times(entry: LogEntry) -> str:
    """The count and the last message."""
    return f"{entry.times} times, last: {entry.message}" if entry.times > 1 else entry.message


@check(
    "cpu", "The processors report no uncorrected machine check", reads=("kernel_log",), needs=("kernel",),
    remedy="Read it with rasdaemon or mcelog; open an RMA for the processor or DIMM it names.",
    source="Linux mce and APEI messages: uncorrected, deferred, recoverable, fatal; NHC check_hw_mcelog",
)  # fmt: skip
def cpu_machine_checks(expected: Expected, document: Document) -> Iterator[Finding]:
    for entry in document.kernel_log.of("mce")[-4:]:
        yield fail(times(entry))
    yield good("none")


@check(
    "cpu", "No processor has locked up", reads=("kernel_log",), needs=("kernel",), action=Action.REBOOT,
    remedy="Reboot. If it recurs, update the firmware, then replace the board. For a hung task, find what it waits for (storage, driver).",
    source="Linux: soft and hard lockup, RCU stall; a hung task (a slow file server) and an expedited stall (20 ms on some kernels) only warn",
)  # fmt: skip
def cpu_lockups(expected: Expected, document: Document) -> Iterator[Finding]:
    for entry in document.kernel_log.of("lockup"):
        # A virtual machine also locks up when its host gives it no CPU time.
        yield fail(times(entry)) if expected.platform == "bare-metal" else warn(times(entry))
    for entry in document.kernel_log.of("hung_task", "slow_rcu"):
        yield warn(times(entry))
    yield good("none")


@check(
    "cpu", "The kernel logged no oops or BUG", reads=("kernel_log",), needs=("kernel",), action=Action.REBOOT,
    remedy="Reboot: after an oops the kernel may hold locks forever. Report it with its trace.",
    source="Linux: oops, BUG, general protection fault in the kernel; node-problem-detector KernelOops",
)  # fmt: skip
def kernel_oops(expected: Expected, document: Document) -> Iterator[Finding]:
    for entry in document.kernel_log.of("oops"):
        yield fail(times(entry))
    yield good("none")


@check(
    "memory", "The kernel logged no memory failure", reads=("kernel_log",), needs=("kernel",), action=Action.RMA,
    remedy=DIMM, source="Linux EDAC, APEI and memory failure messages",
)  # fmt: skip
def memory_log(expected: Expected, document: Document) -> Iterator[Finding]:
    for entry in document.kernel_log.of("memory_uncorrected")[-4:]:
        yield fail(times(entry))
    for entry in document.kernel_log.of("memory_corrected"):
        yield warn(f"corrected: {times(entry)}")
    yield good("none")


@check(
    "memory", "The OOM killer killed no process", reads=("kernel_log",), needs=("kernel",), action=Action.NONE,
    remedy="A job exceeded its memory limit or has none: see ConstrainRAMSpace and DefMemPerCPU.", source="Linux OOM killer messages",
)  # fmt: skip
def memory_oom(expected: Expected, document: Document) -> Iterator[Finding]:
    for entry in document.kernel_log.of("oom"):
        yield fail(times(entry))
    yield good("none")


def with_links(expected: Expected) -> bool:
    return scope.any_gpus(expected) or scope.rdma(expected) or scope.drives(expected)


def declared_device(expected: Expected, entry: LogEntry) -> bool:
    """Whether the SKU has this kind of PCI device."""
    return {
        "gpu": scope.any_gpus(expected), "nvswitch": scope.gpus(expected), "rdma": scope.rdma(expected),
        "nvme": scope.drives(expected), None: True,
    }.get(entry.where, False)  # fmt: skip


@check(
    "fabric", "The kernel logged no PCIe failure", reads=("kernel_log",), applies=with_links, needs=("kernel",),
    limits=("pcie_corrected_events",), remedy=RESEAT, source="ClusterMAX passive checks: AER",
)  # fmt: skip
def pcie_log(expected: Expected, document: Document) -> Iterator[Finding]:
    log, most = document.kernel_log, expected.limit("pcie_corrected_events")
    for entry in log.of("aer_uncorrected"):
        words = f"{entry.device}: {times(entry)}"
        yield fail(words) if declared_device(expected, entry) else warn(words)
    for entry in log.of("aer_corrected"):
        if entry.times > most and declared_device(expected, entry):
            yield fail(
                f"{entry.device}: {entry.times} corrected errors in a day (most {most:.0f})", Action.NONE
            )
    yield good(f"{log.counts.get('aer_corrected', 0)} corrected")


@check(
    "fabric", "No GPU or fabric NIC came up with a narrow PCIe link", reads=("kernel_log",), applies=with_links,
    needs=("kernel",), action=Action.DRAIN, remedy=RESEAT,
    source="Linux `available PCIe bandwidth, limited by`; imbue cluster-health",
)  # fmt: skip
def pcie_limited(expected: Expected, document: Document) -> Iterator[Finding]:
    for entry in document.kernel_log.of("pcie_limited"):
        found = narrow(expected, entry)
        if found is not None:
            yield found
    yield good("none")


def narrow(expected: Expected, entry: LogEntry) -> Finding | None:
    """A link that is narrower or slower than declared for a declared device."""
    if not entry.width or entry.gbps is None:
        return None  # `limited by Unknown speed x0`: nothing was read
    if entry.where is None and (entry.driver not in LINK_DRIVERS or (entry.wide or FULL_WIDTH) < FULL_WIDTH):
        return None
    if entry.where == "rdma" or (entry.where is None and entry.driver == "mlx5_core"):
        speeds = [ports.speed_gbps for ports in expected.ports_of("infiniband", "roce")]
        if not speeds or entry.gbps >= max(speeds):
            return None
        return fail(entry.message) if entry.gbps < min(speeds) else warn(entry.message)
    if entry.where not in ("gpu", None) or expected.gpus is None:
        return None
    declared = expected.gpus.pcie_width
    if declared is None and expected.platform != "bare-metal":
        return warn(entry.message)  # a cloud instance defines the width
    return fail(entry.message) if entry.width < (declared or entry.wide or FULL_WIDTH) else None


@check(
    "disk", "No declared drive failed to read or write", reads=("kernel_log",), needs=("kernel",),
    remedy="Replace the drive.", source="Linux block layer and NVMe driver messages; soperator nvme_raid_health",
)  # fmt: skip
def disk_errors(expected: Expected, document: Document) -> Iterator[Finding]:
    log = document.kernel_log
    for entry in log.of("io_error", "nvme_failed"):
        if entry.device is None or NO_DRIVE.match(entry.device):
            continue
        yield fail(times(entry)) if declared_drive(expected, entry) else warn(times(entry))
    for entry in log.of("nvme_slow"):
        yield warn(times(entry))
    yield good("none")


def declared_drive(expected: Expected, entry: LogEntry) -> bool:
    """An NVMe drive where the SKU has some, or one that carries a declared filesystem."""
    if NVME.match(entry.device or "") and scope.drives(expected):
        return True
    return carries_declared(expected, entry)


def carries_declared(expected: Expected, entry: LogEntry) -> bool:
    """Whether a declared filesystem is mounted from the device, or the mounts are unknown."""
    return entry.mounts is None or bool(set(entry.mounts) & {mount.target for mount in expected.mounts})


@check(
    "filesystem", "No declared filesystem reported damage", reads=("kernel_log",), needs=("kernel",), action=Action.DRAIN,
    remedy="Drain the node, unmount, run fsck or xfs_repair, and check the drive.", source="Linux ext4, XFS and Btrfs messages",
)  # fmt: skip
def fs_errors(expected: Expected, document: Document) -> Iterator[Finding]:
    for entry in document.kernel_log.of("fs_error"):
        if entry.device is None or NO_DRIVE.match(entry.device):
            continue
        yield fail(times(entry)) if carries_declared(expected, entry) else warn(times(entry))
    yield good("none")


@check(
    "filesystem", "Every declared file server answers", reads=("kernel_log",), needs=("kernel",), action=Action.DRAIN,
    limits=("fs_silent_s",), remedy="Check the server, then the network path to it.",
    source="Linux NFS and Lustre messages: not responding until OK, lost until restored",
)  # fmt: skip
def fs_stalled(expected: Expected, document: Document) -> Iterator[Finding]:
    most, now = expected.limit("fs_silent_s"), document.taken_at
    for entry in document.kernel_log.of("nfs_silent", "lustre_silent"):
        if entry.back_at is not None and entry.back_at >= entry.at:
            continue
        silent = now - entry.at
        words = f"{silent:.0f} s without an answer: {entry.message}"
        served = served_declared(expected, entry)
        if silent <= most or not served:
            yield warn(words)
        else:  # a shared server is silent to every node: not the fault of this one
            yield fail(words, Action.NONE if all(mount.shared for mount in served) else None)
    yield good("all of them")


def served_declared(expected: Expected, entry: LogEntry) -> list[ExpectedMount]:
    """The declared filesystems that may be on this server, including those without a declared source."""
    server = re.sub(r"-(?:OST|MDT)[0-9a-f]{4}$", "", entry.server or "")
    return [
        mount
        for mount in expected.mounts
        if mount.target != "/"
        and (mount.source is None or server in mount.source)
        and (mount.type is None or mount.type.startswith(SERVED))
    ]


@check(
    "fabric", "No fabric link flaps", reads=("kernel_log",), limits=("link_flaps",), needs=("kernel",),
    remedy="Reseat or replace the cable or transceiver, then check the switch port.",
    source="Azure azure_ib_link_flapping",
)  # fmt: skip
def link_flaps(expected: Expected, document: Document) -> Iterator[Finding]:
    most = expected.limit("link_flaps")
    for entry in document.kernel_log.of("link_down"):
        if entry.times > most:
            words = f"{entry.device} lost its link {entry.times} times in a day (most {most:.0f})"
            yield fail(words) if entry.where == "rdma" and scope.rdma(expected) else warn(words)
    yield good("none")
