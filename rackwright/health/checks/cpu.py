"""Processors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.history import HOUR, name, rising
from rackwright.health.records import Unreadable
from rackwright.health.registry import check
from rackwright.health.verdict import Action, Finding, fail, good, warn

BIOS = "Compare the BIOS settings with a healthy node. If a whole socket is missing, reseat or replace the processor."
GOOD_CLOCKS = {
    "bare-metal": ("tsc", "arch_sys_counter"),
    "vm": ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"),
}


@check(
    "cpu", "All declared sockets are present", reads=("cpu",), needs=("hardware",), action=Action.REBOOT, remedy=BIOS,
)  # fmt: skip
def cpu_sockets(expected: Expected, document: Document) -> Iterator[Finding]:
    yield from as_many(document.cpu.sockets, expected.sockets, "sockets")


def as_many(found: int, wanted: int, what: str) -> Iterator[Finding]:
    """Too few: broken or switched off, a failure. Too many: not the declared hardware, but it works."""
    if found != wanted:
        yield fail(f"{found} {what}, declared {wanted}", Action.NONE if found > wanted else None)
    yield good(f"{found}")


@check(
    "cpu", "All declared cores are present", reads=("cpu",), needs=("hardware",), action=Action.REBOOT, remedy=BIOS,
)  # fmt: skip
def cpu_cores(expected: Expected, document: Document) -> Iterator[Finding]:
    yield from as_many(document.cpu.cores, expected.cores, "cores")


@check(
    "cpu", "All declared hardware threads are present", reads=("cpu",), needs=("kernel",), action=Action.REBOOT,
    remedy="Hyperthreading is set in the BIOS and by `nosmt`; " + BIOS,
)  # fmt: skip
def cpu_threads(expected: Expected, document: Document) -> Iterator[Finding]:
    found = document.cpu.threads
    if found == expected.cores < expected.threads:
        yield fail(f"{found} threads on {expected.cores} cores: hyperthreading is off", Action.NONE)
        return
    yield from as_many(found, expected.threads, "threads")


@check(
    "cpu", "No processor is offline", reads=("cpu",), needs=("kernel",), action=Action.REBOOT,
    remedy="Find out what took it offline (/sys/devices/system/cpu/cpuN/online). After a machine check, replace it.",
    source="Linux sysfs: present against online",
)  # fmt: skip
def cpu_online(expected: Expected, document: Document) -> Iterator[Finding]:
    offline, online = document.cpu.offline, document.cpu.threads
    if offline:  # with hyperthreading switched off at run time every second one is
        setting = online >= expected.threads or online == expected.cores
        evidence = f"offline: {', '.join(str(number) for number in offline[:16])}"
        yield fail(evidence, Action.NONE if setting else None)
    yield good("all online")


@check(
    "cpu", "Every core uses the performance governor", reads=("cpu",), needs=("cpu-frequency",), action=Action.NONE,
    remedy="Start tuned, or cpupower frequency-set -g performance.", source="gcm and ClusterMAX: governor performance",
)  # fmt: skip
def cpu_governor(expected: Expected, document: Document) -> Iterator[Finding]:
    governors = document.cpu.governors
    shown, threads = sum(governors.values()), document.cpu.threads
    if shown < threads:
        raise Unreadable(f"{shown} of {threads} processors show a governor")
    odd = {name: count for name, count in governors.items() if name != "performance"}
    if odd:
        yield fail(", ".join(f"{count} cores on {name}" for name, count in sorted(odd.items())))
    yield good("performance")


def counts_throttling(expected: Expected) -> bool:
    """Intel processors count thermal throttling; AMD and Arm processors do not."""
    return expected.cpu_architecture == "x86_64" and not re.search("AMD|EPYC", expected.cpu_model or "")


@check(
    "cpu", "Cores are rarely throttled thermally", reads=("cpu", "history"), applies=counts_throttling, needs=("hardware",),
    limits=("cpu_throttle_events",), action=Action.NONE, remedy="Check fans, inlet temperature and heat sinks.", source="Linux sysfs thermal_throttle",
)  # fmt: skip
def cpu_throttle(expected: Expected, document: Document) -> Iterator[Finding]:
    times, most = document.cpu.throttled, expected.limit("cpu_throttle_events")
    if times is None:
        raise Unreadable("not every core counts its thermal throttling")
    found = rising(document, "thermal throttling", name("cpu", "throttled"), times, most, HOUR)
    if found is not None:  # the processor cools itself: slower, not broken
        yield warn(found.evidence)
    yield good("rarely")


@check(
    "cpu", "The kernel's clock source is the processor", reads=("cpu",), needs=("kernel",), action=Action.NONE,
    remedy="The kernel marked the TSC unstable: search dmesg for `tsc`, update the BIOS, and reboot when the node is idle.", source="gcm clocksource check",
)  # fmt: skip
def cpu_clocksource(expected: Expected, document: Document) -> Iterator[Finding]:
    found = document.cpu.clocksource
    if found not in GOOD_CLOCKS.get(expected.platform, GOOD_CLOCKS["bare-metal"]):
        yield fail(f"clock source is {found}")
    yield good(found)


@check(
    "cpu", "Memory and cores are spread over the declared NUMA nodes", reads=("cpu",), needs=("hardware",), action=Action.NONE,
    remedy="Set NPS or SNC in the BIOS as on the other nodes.", source="the declared SKU; nhc.conf of deepops",
)  # fmt: skip
def cpu_numa(expected: Expected, document: Document) -> Iterator[Finding]:
    nodes = [node for node in document.cpu.numa if node.cpus]
    wanted = expected.numa_nodes
    if wanted is not None and len(nodes) != wanted:
        yield fail(f"{len(nodes)} NUMA nodes with processors, declared {wanted}")
    elif wanted is None and (len(nodes) < expected.sockets or len(nodes) % expected.sockets):
        yield fail(f"{len(nodes)} NUMA nodes with processors on {expected.sockets} sockets")
    yield good(f"{len(nodes)}")


def has_microcode(expected: Expected) -> bool:
    return expected.cpu_architecture == "x86_64"


@check(
    "cpu", "All processors run the same microcode", reads=("cpu",), applies=has_microcode, needs=("hardware",), action=Action.NONE,
    remedy="Update the BIOS and the microcode package, then reboot.", source="Linux /proc/cpuinfo",
)  # fmt: skip
def cpu_microcode(expected: Expected, document: Document) -> Iterator[Finding]:
    found = document.cpu.microcodes
    if not found:
        raise Unreadable("/proc/cpuinfo has no microcode version")
    if len(found) > 1:
        yield fail(f"different microcode: {' '.join(found)}")
    yield good(found[0])


@check(
    "cpu", "The load average fits the number of processors", reads=("cpu",), needs=("kernel",), limits=("load_per_cpu",),
    action=Action.NONE, remedy="Find what is running; processes in state D raise the load too.",
    source="NHC check_ps_loadavg",
)  # fmt: skip
def cpu_load(expected: Expected, document: Document) -> Iterator[Finding]:
    load, most = document.cpu.load, expected.limit("load_per_cpu") * expected.threads
    if load > most:
        yield fail(f"load average {load:.0f} on {expected.threads} threads")
    elif load > most / 2:
        yield warn(f"load average {load:.0f} on {expected.threads} threads")
    yield good(f"{load:.1f}")
