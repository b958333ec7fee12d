"""The operating system as a whole: release, name, clock, processes, packages."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health.checks import scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.registry import check
from rackwright.health.verdict import Action, Finding, fail, good, warn


def release_declared(expected: Expected) -> bool:
    return expected.os is not None


@check(
    "os", "The operating system is the declared one", reads=("system",), applies=release_declared, action=Action.NONE,
    remedy="Reinstall the node, or correct the cluster file.", source="the cluster file",
)  # fmt: skip
def os_release(expected: Expected, document: Document) -> Iterator[Finding]:
    name, _, version = str(expected.os).partition("-")
    found, its_version = document.system.os, document.system.os_version
    if found != name or not (its_version + ".").startswith(version + "."):
        yield fail(f"{found} {its_version}, declared {expected.os}")
    yield good(f"{found} {its_version}")


@check(
    "os", "The node has its declared name", reads=("system",), applies=scope.named,
    remedy="Run hostnamectl set-hostname; Slurm finds the node by its host name.", source="the cluster file",
)  # fmt: skip
def os_hostname(expected: Expected, document: Document) -> Iterator[Finding]:
    found = document.system.hostname.split(".")[0]
    if found != expected.node:
        yield fail(f"host name {found}")
    yield good(found)


@check(
    "os", "The node's name resolves to its own address", reads=("naming",), applies=scope.named, action=Action.NONE,
    remedy="Remove the name from the 127.0.1.1 line of /etc/hosts.",
    source="handbook 1.5: MPI, Slurm and etcd bind to what the name resolves to",
)  # fmt: skip
def os_own_name(expected: Expected, document: Document) -> Iterator[Finding]:
    found = document.naming.addresses
    wanted = {one.address for one in expected.addresses}
    if any(address.startswith("127.") for address in found):
        yield fail(f"{expected.node} resolves to {' '.join(found)}")
    elif wanted and not wanted & set(found):
        yield fail(f"{expected.node} resolves to {' '.join(found)}, declared {' '.join(sorted(wanted))}")
    yield good(" ".join(found))


@check(
    "os", "The clock is synchronised", reads=("clock",), needs=("clock",), limits=("clock_stratum",), action=Action.NONE,
    remedy="Run chronyc sources: is a server reachable?", source="StackHPC alert ClockSkew: sync_status",
)  # fmt: skip
def clock_synchronised(expected: Expected, document: Document) -> Iterator[Finding]:
    clock, most = document.clock, expected.limit("clock_stratum")
    if expected.own_clock_stratum is not None:  # the head's clock is the reference, or follows it
        most = max(most, expected.own_clock_stratum + 2)
    if clock.leap != "Normal" or not 0 < clock.stratum < most:
        yield fail(f"stratum {clock.stratum}, {clock.leap}, reference {clock.reference or 'none'}")
    yield good(f"stratum {clock.stratum} by {clock.reference}")


@check(
    "os", "The clock offset is small", reads=("clock",), needs=("clock",), limits=("clock_offset_s", "clock_offset_fail_s"),
    remedy="Run chronyc makestep while no job runs.", source="StackHPC alert ClockSkew; munge",
)  # fmt: skip
def clock_offset(expected: Expected, document: Document) -> Iterator[Finding]:
    off = document.clock.offset_s
    if abs(off) > expected.limit("clock_offset_fail_s"):
        yield fail(f"{off:.0f} s off")
    elif abs(off) > expected.limit("clock_offset_s"):
        yield warn(f"{off:.3f} s off")
    yield good(f"{off:.6f} s")


@check(
    "os", "Few processes are in state D", reads=("processes",), limits=("processes_waiting",), action=Action.NONE,
    remedy="Find what they wait for (/proc/PID/stack): usually storage, else the driver.", source="gcm: D-state processes",
)  # fmt: skip
def processes_stuck(expected: Expected, document: Document) -> Iterator[Finding]:
    waiting, most = document.processes.waiting, expected.limit("processes_waiting")
    if len(waiting) > most:
        names = sorted({one.name for one in waiting})
        yield fail(f"{len(waiting)} processes in state D: {' '.join(names[:8])}")
    yield good(f"{len(waiting)}")


@check(
    "os", "Few processes are zombies", reads=("processes",), limits=("zombies",), action=Action.NONE,
    remedy="Restart their parent process.", source="gcm: zombie processes",
)  # fmt: skip
def processes_zombies(expected: Expected, document: Document) -> Iterator[Finding]:
    found, most = document.processes.zombies, expected.limit("zombies")
    if found > most:
        yield fail(f"{found} zombies")
    elif found > most / 2:
        yield warn(f"{found} zombies")
    yield good(f"{found}")


@check(
    "os", "No package is half installed", reads=("packages",), action=Action.NONE,
    remedy="Run dpkg --configure -a, then apt-get -f install.", source="dpkg status: everything is installed or not",
)  # fmt: skip
def packages_whole(expected: Expected, document: Document) -> Iterator[Finding]:
    broken = document.packages.broken
    if broken:
        yield fail(", ".join(broken[:8]))
    yield good("none")
