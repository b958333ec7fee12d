"""The machine a suite runs on: what it is, how much of its CPU time a run took or was denied, and of its memory."""

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
    memory_mib: int = 0
    """The most that was in use at one time beyond what was in use at the beginning."""

    @property
    def stolen(self) -> float:
        """The share of CPU time that was stolen, from 0 to 1."""
        # The kernel advances its counters at different moments: over a few ticks a part may exceed the whole.
        return min(1.0, self.stolen_seconds / self.capacity_seconds) if self.capacity_seconds else 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.seconds + other.seconds,
            self.cpu_seconds + other.cpu_seconds,
            self.stolen_seconds + other.stolen_seconds,
            self.capacity_seconds + other.capacity_seconds,
            max(self.memory_mib, other.memory_mib),
        )


class Meter:
    """Usage since it was made."""

    def __init__(self) -> None:
        self._began = _now()
        self._memory = self._most_memory = _memory_in_use()

    def sample(self) -> None:
        """Look how much memory is in use; its peak is known only as well as this is called often."""
        self._most_memory = max(self._most_memory, _memory_in_use())

    def read(self) -> Usage:
        self.sample()
        began, now = self._began, _now()
        return Usage(
            now.seconds - began.seconds,
            max(0.0, now.cpu_seconds - began.cpu_seconds),
            max(0.0, now.stolen_seconds - began.stolen_seconds),
            max(0.0, now.capacity_seconds - began.capacity_seconds),
            self._most_memory - self._memory,
        )


def usage(stat: str, seconds: float, ticks: int) -> Usage:
    """The first line of /proc/stat; guest time is part of user time there."""
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, stat.split()[1:9])
    busy = user + nice + system + irq + softirq
    return Usage(seconds, busy / ticks, steal / ticks, (busy + idle + iowait + steal) / ticks)


def memory_in_use(meminfo: str) -> int:
    """MiB of /proc/meminfo that programs and the kernel hold; caches that can be given up are not among them."""
    total, available = (
        int(found[1]) if (found := re.search(rf"^{name}:\s*(\d+) kB$", meminfo, re.MULTILINE)) else 0
        for name in ("MemTotal", "MemAvailable")
    )
    return (total - available) // 1024


def description() -> str:
    """A description of the machine without its name or a path."""
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


def _memory_in_use() -> int:
    return memory_in_use(Path("/proc/meminfo").read_text())


def _now() -> Usage:
    with open("/proc/stat") as file:
        return usage(file.readline(), time.monotonic(), os.sysconf("SC_CLK_TCK"))
