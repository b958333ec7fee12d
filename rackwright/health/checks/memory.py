"""Main memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.history import DAY, name, rising
from rackwright.health.node_records import MemoryController, Slot
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import Action, Finding, fail, good, warn
from rackwright.status import Status

DIMM = "Reseat the DIMM that the firmware names. If it recurs, replace it."


@check(
    "memory", "The kernel sees the declared memory", reads=("memory",), needs=("kernel",), action=Action.RMA,
    limits=("memory_tolerance_percent",), remedy=DIMM, source="the declared SKU; Azure physmem",
)  # fmt: skip
def memory_total(expected: Expected, document: Document) -> Iterator[Finding]:
    found = document.memory.total_mib
    least = expected.memory_mib * (1 - expected.limit("memory_tolerance_percent") / 100)
    if found < least:
        yield fail(f"{found} of {expected.memory_mib} MiB")
    yield good(f"{found} MiB")


def slots_of(document: Document) -> list[Slot]:
    found = document.firmware.slots
    if not found:
        raise Unreadable("the firmware lists no memory slot")
    return found


@check(
    "memory", "The installed DIMMs add up to the declared memory", reads=("firmware",), needs=("hardware",),
    action=Action.RMA, remedy=DIMM, source="the declared SKU; SMBIOS type 17",
)  # fmt: skip
def memory_dimms(expected: Expected, document: Document) -> Iterator[Finding]:
    slots = slots_of(document)
    there = [slot for slot in slots if slot.size_mib]
    total = sum(slot.size_mib for slot in there)
    if total < expected.memory_mib:
        empty = ", ".join(slot.locator for slot in slots if not slot.size_mib)
        yield fail(
            f"{len(there)} DIMMs, {total} MiB in total, declared {expected.memory_mib} MiB; empty slots: {empty or 'none'}"
        )
    yield good(f"{len(there)} DIMMs")


@check(
    "memory", "All DIMMs run at the same speed", reads=("firmware",), needs=("hardware",), action=Action.NONE,
    remedy="Check for mixed DIMMs or a BIOS setting; reseat the slow DIMM.", source="SMBIOS type 17: the commonest configured speed",
)  # fmt: skip
def memory_speed(expected: Expected, document: Document) -> Iterator[Finding]:
    there = [slot for slot in slots_of(document) if slot.size_mib]
    if not there:
        raise Unreadable("the firmware lists no DIMM")
    usual = Counter(slot.configured for slot in there).most_common(1)[0][0]

    def judge(slot: Slot) -> Finding | None:
        if slot.configured < usual or slot.configured == 0:
            return fail(f"{slot.locator} runs at {slot.configured} MT/s, the others at {usual}")
        return None

    yield from each(there, judge, f"{usual} MT/s")


def controllers_of(document: Document) -> list[MemoryController]:
    found = document.memory.controllers
    if not found:
        raise Unreadable("no memory controller counts errors: load the EDAC driver of this processor")
    return found


@check(
    "memory", "Memory has no uncorrected error", reads=("memory",), needs=("hardware",), action=Action.RMA, remedy=DIMM,
    source="StackHPC alert: EDAC UE above 0; ClusterMAX: errors on CPU",
)  # fmt: skip
def memory_uncorrected(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(controller: MemoryController) -> Finding | None:
        errors = controller.uncorrected
        return fail(f"{controller.name} counts {errors} uncorrected errors") if errors else None

    yield from each(controllers_of(document), judge, "none")


@check(
    "memory", "Memory has few corrected errors", reads=("memory", "history"), needs=("hardware",),
    limits=("memory_corrected", "memory_corrected_fail"), remedy=DIMM, source="mcelog.conf; ClusterMAX: SBE on CPU",
)  # fmt: skip
def memory_corrected(expected: Expected, document: Document) -> Iterator[Finding]:
    much, most = expected.limit("memory_corrected"), expected.limit("memory_corrected_fail")

    def judge(controller: MemoryController) -> Finding | None:
        counter = f"{controller.name}: corrected errors", name("edac", controller.name, "corrected")
        found = rising(document, *counter, controller.corrected, most, DAY)
        if found is not None:
            return found
        some = rising(document, *counter, controller.corrected, much, DAY)
        return warn(some.evidence) if some is not None else None

    if not document.memory.controllers:
        yield Finding(Status.OUT_OF_SCOPE, "no memory controller counts errors; see memory-uncorrected")
        return
    yield from each(document.memory.controllers, judge, "few")


@check(
    "memory", "The kernel has offlined little damaged memory", reads=("memory",), needs=("kernel",),
    limits=("memory_poisoned_kib",), remedy=DIMM, source="Linux /proc/meminfo HardwareCorrupted",
)  # fmt: skip
def memory_poisoned(expected: Expected, document: Document) -> Iterator[Finding]:
    found = document.memory.corrupted_kib
    if found > expected.limit("memory_poisoned_kib"):
        yield fail(f"{found} KiB are damaged")
    elif found:
        yield warn(f"{found} KiB are damaged and offline")
    yield good("none")


@check(
    "memory", "There is no swap", reads=("memory",), needs=("swap",), action=Action.NONE,
    remedy="Run swapoff -a and remove it from /etc/fstab.", source="Azure check_hw_swap; imbue; kubespray",
)  # fmt: skip
def memory_swap(expected: Expected, document: Document) -> Iterator[Finding]:
    found = document.memory.swap_mib
    if found:
        yield fail(f"{found} MiB of swap")
    yield good("none")


@check(
    "memory", "Enough memory is available", reads=("memory",), needs=("kernel",), action=Action.NONE,
    limits=("memory_available_warn_percent", "memory_available_fail_percent"),
    remedy="Find what uses it; after a job, look for left-over processes and files in /dev/shm.", source="node_exporter mixin",
)  # fmt: skip
def memory_available(expected: Expected, document: Document) -> Iterator[Finding]:
    percent = 100 * document.memory.available_mib / expected.memory_mib
    if percent < expected.limit("memory_available_fail_percent"):
        yield fail(f"{percent:.1f} % available")
    elif percent < expected.limit("memory_available_warn_percent"):
        yield warn(f"{percent:.1f} % available")
    yield good(f"{percent:.0f} %")


def several_nodes(expected: Expected) -> bool:
    return (expected.numa_nodes or expected.sockets) > 1


@check(
    "memory", "Memory is spread evenly over the NUMA nodes", reads=("cpu",), applies=several_nodes, needs=("hardware",),
    action=Action.RMA, limits=("memory_numa_percent",), remedy=DIMM, source="Linux sysfs node meminfo",
)  # fmt: skip
def memory_numa(expected: Expected, document: Document) -> Iterator[Finding]:
    nodes = [node for node in document.cpu.numa if node.cpus]
    if not nodes:
        raise Unreadable("there is no NUMA node")
    most = max(node.memory_mib for node in nodes)
    for node in nodes:
        if node.memory_mib < most * (1 - expected.limit("memory_numa_percent") / 100):
            yield fail(f"node {node.node} has {node.memory_mib} MiB, another {most:.0f}")
    yield good(f"{most:.0f} MiB each")
