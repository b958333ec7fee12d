"""Error counters from earlier passes: checks judge an increase, never a total since boot.

A node keeps snapshots of the last day. Each holds only what changed since the one before it, so a quiet node
stores almost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from rackwright.health import nvlink_counters
from rackwright.health.document import Document
from rackwright.health.gpu_records import Gpu, PciDevice
from rackwright.health.node_records import Drive, Interface, RdmaPort
from rackwright.health.records import Unreadable
from rackwright.health.verdict import Finding, fail, unknown, warn

SPACING_SECONDS = 1740.0
"""Half an hour, minus the time by which a pass may be early."""
KEPT_SECONDS = 90000.0
"""A day and an hour."""
HOUR, DAY = 3600.0, 86400.0

Snapshot = Mapping[str, Any]
"""`{"at": seconds since the epoch, "changed": {key: value}}`; in the first one, every counter."""


@dataclass(frozen=True)
class Rise:
    """The increase of a counter."""

    count: int
    seconds: float
    """Time since the earliest reading within the window."""


def rise(snapshots: Sequence[Snapshot], key: str, value: int, at: float, window: float) -> Rise | None:
    """The increase of a counter up to now; None without a reading in the window.

    A counter that fell was reset and has counted from 0 since.
    """
    earliest, last, count = None, None, 0
    for snapshot in snapshots:
        reading = snapshot["changed"].get(key, last)
        if reading is not None and at - window <= snapshot["at"] < at:
            if earliest is None:
                earliest = snapshot["at"]
            else:
                count += reading - last if reading >= last else reading
        last = reading
    if earliest is None or last is None:
        return None
    return Rise(count + (value - last if value >= last else value), at - earliest)


def updated(snapshots: Sequence[Snapshot], counters: Mapping[str, int], at: float) -> list[Snapshot]:
    """The snapshots with the new one, if the last one is old enough, and without expired ones."""
    if any(one["at"] > at for one in snapshots):
        snapshots = []  # the clock was set back: a future snapshot would never expire
    if snapshots and at - snapshots[-1]["at"] < SPACING_SECONDS:
        return list(snapshots)
    state: dict[str, int] = {}
    for one in snapshots:
        state.update(one["changed"])
    changed = {key: value for key, value in counters.items() if state.get(key) != value}
    kept = [*snapshots, {"at": round(at, 3), "changed": changed}]
    while kept[0]["at"] < at - KEPT_SECONDS:
        kept[1] = {**kept[1], "changed": {**kept[0]["changed"], **kept[1]["changed"]}}
        del kept[0]
    return kept


def name(*parts: object) -> str:
    """The key of a counter: `name("ib", "mlx5_0", 1, "symbol_error")`."""
    return "/".join(str(part) for part in parts)


def increase(document: Document, key: str, value: int, window: float) -> Rise | None:
    """The increase of a counter within the window and this boot; None without an earlier reading.

    A boot resets most counters and trains every link, which counts some errors on a healthy node, so
    readings from before the boot are ignored.
    """
    return rise(document.snapshots, key, value, document.taken_at, min(window, _uptime(document)))


def _uptime(document: Document) -> float:
    try:
        return document.system.uptime_s
    except Unreadable:
        return KEPT_SECONDS


def rising(document: Document, what: str, key: str, value: int, most: float, window: float) -> Finding | None:
    """FAIL if a counter rose by more than `most` within the window.

    A total of at most `most` cannot have risen by more. A larger total without an earlier reading is a WARN,
    because the time of the errors is unknown.
    """
    if value <= most:
        return None
    span = "an hour" if window == HOUR else f"{window / HOUR:g} h"
    found = increase(document, key, value, window)
    if found is None and (ahead := _ahead(document)):
        return unknown(
            f"{what} {value} in total; the clock was set back by {ahead:.0f} s since the last reading"
        )
    if found is None:
        return warn(f"{what} {value} in total (most {most:g} in {span}); no earlier reading to compare with")
    if found.count <= most:
        return None
    return fail(f"{what} +{found.count} in {found.seconds / 60:.0f} min (most {most:g} in {span})")


def _ahead(document: Document) -> float:
    """Seconds by which the last reading is newer than the document; 0.0 if it is not."""
    last = max((one["at"] for one in document.snapshots), default=0.0)
    return max(0.0, last - document.taken_at)


def counters_of(document: Document) -> dict[str, int]:
    """Every counter in a document that a check judges by its increase."""
    found: dict[str, int] = {}
    for read in (_infiniband, _gpus, _amd, _nvlinks, _pci, _memory, _network, _drives, _cpu, _services):
        try:
            found.update((key, value) for key, value in read(document) if value is not None)
        except Unreadable:
            continue  # a section that was not read, or only in part, keeps its old values
    return found


Counters = Iterator["tuple[str, int | None]"]
T = TypeVar("T")


def _of_each(things: Iterable[T], read: Callable[[T], dict[str, int | None]]) -> Counters:
    """The counters of each item; one without counters, such as a NIC without a PMA, does not affect the others."""
    for thing in things:
        try:
            yield from read(thing).items()
        except Unreadable:
            continue


def _infiniband(document: Document) -> Counters:
    for device in document.infiniband.devices:
        yield from _of_each(device.ports, partial(_port, device.name))


def _port(device: str, port: RdmaPort) -> dict[str, int | None]:
    return {name("ib", device, port.port, counter): value for counter, value in port.counters.items()}


def _gpus(document: Document) -> Counters:
    for gpu in document.gpus.gpus:
        for counter, reader in GPU_COUNTERS.items():
            try:
                yield name("gpu", gpu.uuid, counter), reader(gpu)
            except Unreadable:
                continue


GPU_COUNTERS: dict[str, Callable[[Gpu], int]] = {
    "replays": lambda gpu: gpu.pcie.replays,
    "sram_correctable": lambda gpu: gpu.ecc.volatile.sram_correctable,
    "dram_correctable": lambda gpu: gpu.ecc.volatile.dram_correctable,
}


def _amd(document: Document) -> Counters:
    for gpu in document.amd_metrics.gpus:
        yield name("amd", gpu.index, "uncorrectable"), gpu.uncorrectable


def _nvlinks(document: Document) -> Counters:
    for gpu in document.nvlink.gpus:
        for counter, value in (gpu.errors or {}).items():
            if counter in nvlink_counters.JUDGED:
                yield name("nvlink", gpu.index, counter), value


def _pci(document: Document) -> Counters:
    def read(device: PciDevice) -> dict[str, int | None]:
        counts = {
            "corrected": device.aer.correctable,
            "nonfatal": device.aer.nonfatal,
            "fatal": device.aer.fatal,
        }
        return {name("pci", device.address, key): value for key, value in counts.items()}

    return _of_each(document.pci.devices, read)


def _memory(document: Document) -> Counters:
    return _of_each(
        document.memory.controllers, lambda one: {name("edac", one.name, "corrected"): one.corrected}
    )


def _network(document: Document) -> Counters:
    def read(interface: Interface) -> dict[str, int | None]:
        return {name("net", interface.name, key): value for key, value in interface.statistics.items()}

    return _of_each([one for one in document.network.interfaces if one.ipv4], read)


def _drives(document: Document) -> Counters:
    def read(drive: Drive) -> dict[str, int | None]:
        smart = drive.smart
        return {name("nvme", drive.name, "media_errors"): smart.media_errors} if smart is not None else {}

    return _of_each(document.nvme.drives, read)


def _cpu(document: Document) -> Counters:
    yield name("cpu", "throttled"), document.cpu.throttled


def _services(document: Document) -> Counters:
    return _of_each(document.services.units, lambda one: {name("unit", one.name, "restarts"): one.restarts})
