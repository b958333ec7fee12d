"""Errors that the NVIDIA driver wrote to the kernel log."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health.checks import scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.kernel_records import LogEntry
from rackwright.health.registry import check
from rackwright.health.verdict import Action, Finding, fail, good, warn
from rackwright.health.xid import NONFATAL, SOURCE, action_of, cleared_at
from rackwright.status import Status


def of_gpus(document: Document, kind: str) -> list[LogEntry]:
    """Entries about a GPU, or about a device that has left the bus."""
    return [one for one in document.kernel_log.of(kind) if one.where in ("gpu", None)]


def described(entry: LogEntry, name: str = "XID") -> str:
    """`XID 79 on 0000:4b:00, 3 times: NVRM: ...`."""
    times = f", {entry.times} times" if entry.times > 1 else ""
    return f"{name} {entry.code} on {entry.device}{times}: {entry.message}"


@check(
    "gpu", "No XID of the last day needs more than a job restart", reads=("kernel_log",), applies=scope.gpus,
    needs=("gpu",), remedy="Carry out the XID's action. If the same GPU fails again, run dcgmi diag -r 3, then open an RMA.", source=SOURCE,
)  # fmt: skip
def xid_hardware(expected: Expected, document: Document) -> Iterator[Finding]:
    entries = of_gpus(document, "xid")
    for entry in entries:
        action = action_of(entry, entries, expected.xids)
        if entry.severity == NONFATAL:
            yield warn(described(entry))
        if action is None or action.rank < Action.DRAIN.rank:
            continue
        if entry.at < cleared_at(entry.device, entries):
            yield warn(f"since cleared by the driver: {described(entry)}")
        else:
            yield fail(described(entry), action)
    yield good("none")


@check(
    "gpu", "Every XID of the last day is in NVIDIA's catalogue", reads=("kernel_log",), applies=scope.gpus,
    needs=("gpu",), action=Action.NONE, remedy="Look it up in NVIDIA's XID documentation; a newer rackwright may know it.",
    source=SOURCE,
)  # fmt: skip
def xid_known(expected: Expected, document: Document) -> Iterator[Finding]:
    entries = of_gpus(document, "xid")
    for entry in entries:
        if action_of(entry, entries, expected.xids) is None:
            yield fail(f"no known action: {described(entry)}")
    yield good("all of them")


@check(
    "gpu", "Few XIDs point to an application fault", reads=("kernel_log",), applies=scope.gpus, needs=("gpu",),
    limits=("xid_application_bursts",), action=Action.NONE,
    remedy="Check the jobs first. If the same GPU fails under different jobs, run dcgmi diag -r 3.", source=SOURCE,
)  # fmt: skip
def xid_application(expected: Expected, document: Document) -> Iterator[Finding]:
    entries = of_gpus(document, "xid")
    most, bursts = expected.limit("xid_application_bursts"), 0
    for entry in entries:
        if action_of(entry, entries, expected.xids) is Action.RESTART_JOB:
            bursts += entry.bursts
            yield Finding(Status.WARN, described(entry), Action.RESTART_JOB)
    if bursts > most:
        yield fail(f"{bursts} bursts in a day (most {most:.0f})")
    yield good("none")


@check(
    "gpu", "No NVSwitch reported a fatal error", reads=("kernel_log",), applies=scope.fabricmanager,
    needs=("gpu",), action=Action.REBOOT, remedy="Reboot. If it recurs, open an RMA for the baseboard.",
    source="NVIDIA fabric manager user guide, SXid errors",
)  # fmt: skip
def sxid_fatal(expected: Expected, document: Document) -> Iterator[Finding]:
    for entry in document.kernel_log.of("sxid"):
        if entry.severity == "Fatal":
            yield fail(described(entry, "SXid"))
    yield good("none")


@check(
    "gpu", "NVSwitches report few errors", reads=("kernel_log",), applies=scope.fabricmanager, needs=("gpu",),
    limits=("sxid_nonfatal_events",), action=Action.NONE, remedy="Watch the link it names. If errors increase, reboot, then open an RMA.",
    source="NVIDIA fabric manager user guide, SXid errors: non-fatal ones need no action",
)  # fmt: skip
def sxid_nonfatal(expected: Expected, document: Document) -> Iterator[Finding]:
    most = expected.limit("sxid_nonfatal_events")
    entries = [entry for entry in document.kernel_log.of("sxid") if entry.severity != "Fatal"]
    times = sum(entry.times for entry in entries)
    if times > most:
        yield fail(f"{times} in a day (most {most:.0f}), last: {entries[-1].message}")
    elif entries:
        yield warn(f"{times} in a day, last: {entries[-1].message}")
    yield good("none")


@check(
    "gpu", "No GPU fell off the bus or failed to start", reads=("kernel_log",), applies=scope.gpus,
    needs=("gpu",), action=Action.REBOOT, remedy="Power-cycle the node. If it recurs, open an RMA for the GPU or its slot.",
    source="NVIDIA driver messages: fallen off the bus, RmInitAdapter failed",
)  # fmt: skip
def gpu_lost(expected: Expected, document: Document) -> Iterator[Finding]:
    for entry in of_gpus(document, "gpu_lost")[-8:]:
        yield fail(f"{entry.device or 'a GPU'}: {entry.message}")
    yield good("none")


@check(
    "gpu", "The driver brought up all NVLinks", reads=("kernel_log",), applies=scope.nvlink, needs=("gpu",),
    action=Action.REBOOT, remedy="Reset all GPUs with fabricmanager, or reboot. If it recurs, open an RMA for the baseboard.",
    source="open-gpu-kernel-modules, kernel_nvlink: postRxDetLinkMask; gpud pull request 1272 asks for a reboot",
)  # fmt: skip
def nvlink_log(expected: Expected, document: Document) -> Iterator[Finding]:
    for entry in document.kernel_log.of("nvlink_failed")[-1:]:
        yield fail(f"{entry.times} times: {entry.message}")
    yield good("no failure logged")


@check(
    "gpu", "The driver logged no API mismatch with its libraries", reads=("kernel_log",), applies=scope.gpus, needs=("gpu",),
    action=Action.REBOOT, remedy="Reboot or reload the driver: an update replaced only one of the two.",
    source="NVIDIA driver message: API mismatch",
)  # fmt: skip
def driver_mismatch_log(expected: Expected, document: Document) -> Iterator[Finding]:
    for entry in document.kernel_log.of("driver_mismatch")[-1:]:
        yield fail(entry.message)
    yield good("none")
