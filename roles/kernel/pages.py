"""Huge pages: their sizes, and how each is reserved. Pure.

Pages up to a few MiB are found while a node runs; larger ones only at boot, from the command line. There the
kernel reads `hugepagesz` and `hugepages` in pairs, and grubby keeps one argument of a name, so that one such size
can be declared (kernel.org, "HugeTLB Pages", and kernel-parameters.txt, read 2026-11-24).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

HUGE = "/sys/kernel/mm/hugepages"
_MIB = {"2M": 2, "32M": 32, "512M": 512, "1G": 1024, "16G": 16384}
_AT_BOOT = frozenset({"32M", "512M", "1G", "16G"})


def sizes(cpu: str, page_size: Literal["4k", "64k"] | None) -> tuple[str, ...]:
    """Sizes that the kernel of an architecture has."""
    if page_size == "64k":
        return ("2M", "512M", "16G")
    return ("2M", "32M", "1G") if cpu == "aarch64" else ("2M", "1G")


def reserved_mib(declared: Mapping[str, int]) -> int:
    """Memory that all huge pages take from everything else, MiB."""
    return sum(_MIB.get(size, 0) * count for size, count in declared.items())


def only_at_boot(declared: Mapping[str, int]) -> tuple[str, ...]:
    """Declared sizes that only the command line reserves."""
    return tuple(size for size in declared if size in _AT_BOOT)


def at_boot(declared: Mapping[str, int]) -> dict[str, str | None]:
    """Arguments that reserve them, in the order in which the kernel reads them."""
    return {
        name: value
        for size in only_at_boot(declared)
        for name, value in (("hugepagesz", size), ("hugepages", str(declared[size])))
    }


def while_running(declared: Mapping[str, int]) -> dict[str, int]:
    """Files below /sys in which the running kernel takes a number of pages."""
    return {path_of(size): count for size, count in declared.items() if size not in _AT_BOOT}


def path_of(size: str) -> str:
    """The file below /sys with the number of pages of a size."""
    return f"{HUGE}/hugepages-{_MIB[size] * 1024}kB/nr_hugepages"
