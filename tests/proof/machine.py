"""The machine a suite runs on: what it is, and how much of its CPU time a run took or was denied."""

from __future__ import annotations

import os
import platform
import re
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Usage:
    """What passed on the whole machine, in seconds. CPU seconds add up over all cores."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Spent by processes and by the kernel."""
    stolen_seconds: float = 0.0
    """Wanted, and given to another virtual machine by the hypervisor."""
    capacity_seconds: float = 0.0
    """Everything there was, idle time included."""

    @property
    def stolen(self) -> float:
        """The share of CPU time that was stolen, from 0 to 1."""
        return self.stolen_seconds / self.capacity_seconds if self.capacity_seconds else 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.seconds + other.seconds,
            self.cpu_seconds + other.cpu_seconds,
            self.stolen_seconds + other.stolen_seconds,
            self.capacity_seconds + other.capacity_seconds,
        )


class Meter:
    """Usage since it was made."""

    def __init__(self) -> None:
        self._began = _now()

    def read(self) -> Usage:
        began, now = self._began, _now()
        return Usage(
            now.seconds - began.seconds,
            max(0.0, now.cpu_seconds - began.cpu_seconds),
            max(0.0, now.stolen_seconds - began.stolen_seconds),
            max(0.0, now.capacity_seconds - began.capacity_seconds),
        )


def usage(stat: str, seconds: float, ticks: int) -> Usage:
    """The first line of /proc/stat; guest time is part of user time there."""
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, stat.split()[1:9])
    busy = user + nice + system + irq + softirq
    return Usage(seconds, busy / ticks, steal / ticks, (busy + idle + iowait + steal) / ticks)


def description() -> str:
    """The machine in words; neither its name nor a path."""
    return describe(
        os.cpu_count() or 1,
        Path("/proc/cpuinfo").read_text(),
        Path("/proc/meminfo").read_text(),
        platform.freedesktop_os_release().get("PRETTY_NAME", "Linux"),
        platform.release(),
    )


def describe(cores: int, cpuinfo: str, meminfo: str, system: str, kernel: str) -> str:
    """E.g. `2 cores of Intel Xeon, 8 GiB of memory, Debian GNU/Linux 12 (bookworm), kernel 6.1.0`."""
    model = re.search(r"^model name\s*: (.+)$", cpuinfo, re.MULTILINE)
    total = re.search(r"^MemTotal:\s*(\d+) kB$", meminfo, re.MULTILINE)
    processor = " ".join(model[1].split()) if model else platform.machine()
    memory = f"{int(total[1]) / 2**20:.0f} GiB of memory" if total else "unknown memory"
    return f"{cores} {'core' if cores == 1 else 'cores'} of {processor}, {memory}, {system}, kernel {kernel}"


def _now() -> Usage:
    with open("/proc/stat") as file:
        return usage(file.readline(), time.monotonic(), os.sysconf("SC_CLK_TCK"))
