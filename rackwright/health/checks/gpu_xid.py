"""What the NVIDIA driver complained about in the kernel's log."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health.checks import scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.node_records import LogEntry
from rackwright.health.registry import check
from rackwright.health.verdict import Action, Finding, fail, good, unknown, warn
from rackwright.health.xid import SOURCE, action_of
from rackwright.status import Status


def newest(entries: list[LogEntry]) -> dict[tuple[int, str], tuple[LogEntry, int]]:
    """The last entry of each number and device, and how many there were."""
    found: dict[tuple[int, str], tuple[LogEntry, int]] = {}
    for entry in entries:
        key = (entry.code, entry.device or "?")
        found[key] = (entry, found[key][1] + 1 if key in found else 1)
    return found


@check(
    "gpu", "No XID of the last day asks for more than a new job", reads=("kernel_log",), applies=scope.gpus,
    needs=("gpu",), remedy="Do what the XID asks for; the same GPU again: dcgmi diag -r 3, then RMA.", source=SOURCE,
)  # fmt: skip
def xid_hardware(expected: Expected, document: Document) -> Iterator[Finding]:
    for (code, device), (entry, times) in sorted(newest(document.kernel_log.of("xid")).items()):
        action = action_of(code, entry.message, expected.xids)
        told = f"XID {code} on {device}, {times} times: {entry.message}"
        if action is None:
            yield unknown("nobody knows what to do about it: " + told)
        elif action.rank >= Action.DRAIN.rank:
            yield fail(told, action)
    yield good("none")


@check(
    "gpu", "Few XIDs blame the applications", reads=("kernel_log",), applies=scope.gpus, needs=("gpu",),
    limits=("xid_application_events",), remedy="Look at the jobs first; the same GPU under different jobs: dcgmi diag.",
    source=SOURCE,
)  # fmt: skip
def xid_application(expected: Expected, document: Document) -> Iterator[Finding]:
    most, total = expected.limit("xid_application_events"), 0
    for (code, device), (entry, times) in sorted(newest(document.kernel_log.of("xid")).items()):
        if action_of(code, entry.message, expected.xids) is Action.RESTART_JOB:
            total += times
            told = f"XID {code} on {device}, {times} times: {entry.message}"
            yield Finding(Status.WARN, told, Action.RESTART_JOB)
    if total > most:
        yield fail(f"{total} in a day (most {most:.0f})")
    yield good("none")


@check(
    "gpu", "No NVSwitch reported a fatal error", reads=("kernel_log",), applies=scope.fabricmanager,
    needs=("gpu",), action=Action.REBOOT, remedy="Reboot; again: RMA of the baseboard.",
    source="NVIDIA fabric manager user guide, SXid errors",
)  # fmt: skip
def sxid_fatal(expected: Expected, document: Document) -> Iterator[Finding]:
    for (code, device), (entry, times) in sorted(newest(document.kernel_log.of("sxid")).items()):
        if "Non-fatal" not in entry.message:
            yield fail(f"SXid {code} on {device}, {times} times: {entry.message}")
    yield good("none")


@check(
    "gpu", "NVSwitches report few errors", reads=("kernel_log",), applies=scope.fabricmanager, needs=("gpu",),
    limits=("sxid_nonfatal_events",), remedy="Watch the link it names; growing: reboot, then RMA.",
    source="NVIDIA fabric manager user guide, SXid errors",
)  # fmt: skip
def sxid_nonfatal(expected: Expected, document: Document) -> Iterator[Finding]:
    most = expected.limit("sxid_nonfatal_events")
    entries = [entry for entry in document.kernel_log.of("sxid") if "Non-fatal" in entry.message]
    if len(entries) > most:
        yield fail(f"{len(entries)} in a day (most {most:.0f}), last: {entries[-1].message}")
    elif entries:
        yield warn(f"{len(entries)} in a day, last: {entries[-1].message}")
    yield good("none")


@check(
    "gpu", "No GPU fell off the bus or failed to start", reads=("kernel_log",), applies=scope.gpus,
    needs=("gpu",), action=Action.REBOOT, remedy="Power-cycle the node; again: RMA of the GPU or its slot.",
    source="NVIDIA driver messages: fallen off the bus, RmInitAdapter failed",
)  # fmt: skip
def gpu_lost(expected: Expected, document: Document) -> Iterator[Finding]:
    for entry in document.kernel_log.of("gpu_lost")[-8:]:
        yield fail(entry.message)
    yield good("none")


@check(
    "gpu", "Driver and libraries did not disagree", reads=("kernel_log",), applies=scope.gpus, needs=("gpu",),
    action=Action.REBOOT, remedy="Reboot, or reload the driver: an update replaced only one of the two.",
    source="NVIDIA driver message: API mismatch",
)  # fmt: skip
def driver_mismatch_log(expected: Expected, document: Document) -> Iterator[Finding]:
    for entry in document.kernel_log.of("driver_mismatch")[-1:]:
        yield fail(entry.message)
    yield good("none")
