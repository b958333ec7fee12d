"""Judges the links of correctly placed cables: speed, width, errors, flaps; and the firmware of both ends."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator

from rackwright.boundary import printable
from rackwright.fabric.discovered import Health
from rackwright.fabric.finding import Finding, Kind
from rackwright.fabric.identify import Found, FoundEnd
from rackwright.model.fabric import Cable, Fabric, NodePort
from rackwright.model.ranges import fold
from rackwright.status import Status

SPEED_TOLERANCE = 0.03
"""Rates are sold rounded: FDR is sold as 56 Gb/s and has 54.5."""
RECEIVE_ERRORS = 100
"""PortRcvErrors above it fail; LinkDownedCounter and SymbolErrorCounter above 0 are looked at
(Azure azurehpc-health-checks, ib_link_validation, read 2026-11-20)."""
SATURATED = 0xFFFF
"""SymbolErrorCounter has 16 bits and stops there (InfiniBand Architecture Specification, PortCounters)."""


def judge_links(
    fabric: Fabric,
    found: Found,
    describe: Callable[[FoundEnd], str],
    cables: Iterable[Cable],
    no_speed: frozenset[str],
) -> Iterator[Finding]:
    """Problems with the links of these cables."""
    unread: dict[str, list[str]] = defaultdict(list)
    for cable in cables:
        link = found.link[cable.near]
        both = f"{describe(cable.near)} to {describe(cable.far)}"
        ends = (str(cable.near), str(cable.far))
        judged = not (isinstance(cable.near, NodePort) and cable.near.node in no_speed)
        if judged and cable.speed_gbps is not None:
            if link.gbps is None:
                unread["speed"].append(str(cable.near))
            elif abs(link.gbps - cable.speed_gbps) > SPEED_TOLERANCE * cable.speed_gbps and not _narrow(
                cable, link.lanes
            ):
                text = f"{both} runs at {link.gbps:g} Gb/s, declared {cable.speed_gbps:g}."
                yield Finding(Kind.SPEED, text, ends)
        if judged and cable.lanes is not None:
            if link.lanes is None:
                unread["width"].append(str(cable.near))
            elif link.lanes != cable.lanes:
                speed = f" and {link.gbps:g} Gb/s" if link.gbps is not None else ""
                text = f"{both} has {link.lanes} lanes{speed}, declared {cable.lanes}."
                yield Finding(Kind.WIDTH, text, ends)
        rate = found.bit_error_rates.get(cable.near) if isinstance(cable.near, NodePort) else None
        if judged and fabric.max_ber is not None and rate is None and not cable.uplink:
            unread["bit error rate"].append(str(cable.near))
        for end in cable.ends:
            other = cable.far if end == cable.near else cable.near
            health = found.health.get(end, Health())
            named = f"{describe(end)}, cabled to {describe(other)},"
            yield from _errors(fabric, health, rate if end == cable.near else None, named, ends)
    for what, ports in unread.items():
        shown = ", ".join(ports[:8]) + (f" and {len(ports) - 8} more" if len(ports) > 8 else "")
        yield Finding(Kind.UNREAD, f"The {what} of {shown} could not be read.", tuple(ports), Status.UNKNOWN)
    yield from _firmware(fabric, found)


def _narrow(cable: Cable, lanes: int | None) -> bool:
    """Whether a narrow link explains its speed: then that is the finding."""
    return cable.lanes is not None and lanes is not None and lanes != cable.lanes


def _errors(
    fabric: Fabric, health: Health, rate: float | None, end: str, ends: tuple[str, ...]
) -> Iterator[Finding]:
    if health.link_downed:
        times = "once" if health.link_downed == 1 else f"{health.link_downed} times"
        text = f"The link of {end} went down {times} since its counters were cleared; reboots count too."
        yield Finding(Kind.FLAPPING, text, ends, Status.WARN)
    counted = []
    if health.symbol_errors is not None and 0 < health.symbol_errors < SATURATED:
        yield Finding(Kind.ERRORS, f"{end} has {health.symbol_errors} symbol errors.", ends, Status.WARN)
    elif health.symbol_errors:
        counted.append(f"{SATURATED} symbol errors or more")
    if health.receive_errors is not None and health.receive_errors > RECEIVE_ERRORS:
        counted.append(f"{health.receive_errors} receive errors")
    if rate is not None and fabric.max_ber is not None and rate > fabric.max_ber:
        counted.append(f"an effective bit error rate of {rate:g} (at most {fabric.max_ber:g} was declared)")
    if counted:
        yield Finding(Kind.ERRORS, f"{end} has {' and '.join(counted)}.", ends)


def _numbers(version: str) -> tuple[int, ...] | str:
    """Tools pad them differently: 31.2014.0004 is 31.2014.04."""
    parts = version.split(".")
    return tuple(map(int, parts)) if all(part.isascii() and part.isdecimal() for part in parts) else version


def _firmware(fabric: Fabric, found: Found) -> Iterator[Finding]:
    """Devices whose firmware is not the declared one, or not that of most others of their model.

    A declared firmware that was not read is UNKNOWN.
    """
    for name, declares in fabric.switches.items():
        read = [device.firmware for device in found.devices.get(name, ()) if device.firmware is not None]
        if declares.firmware is not None and name in found.seen and not read:
            text = f"The firmware of {name} was not read; {declares.firmware} was declared."
            yield Finding(Kind.UNREAD, text, (name,), Status.UNKNOWN)
    alike: dict[tuple[bool, str], list[tuple[str, str]]] = defaultdict(list)
    for name, devices in found.devices.items():
        for device in devices:
            if device.firmware is None:
                continue
            switch = fabric.switches.get(name)
            declared = switch.firmware if switch is not None else None
            if declared is not None and _numbers(device.firmware) != _numbers(declared):
                text = f"{name} has firmware {printable(device.firmware, 40)}; {declared} was declared."
                yield Finding(Kind.FIRMWARE, text, (name,))
            elif declared is None:
                alike[device.switch, device.model or "?"].append((name, device.firmware))
    for (_, model), members in alike.items():
        versions = Counter(version for _, version in members)
        if len(versions) < 2:
            continue
        (usual, count), *_ = versions.most_common()
        for version in sorted(set(versions) - {usual}):
            names = sorted({name for name, own in members if own == version})
            text = (
                f"{fold(names)} ({printable(model, 40)}): firmware {printable(version, 40)}, and {printable(usual, 40)} "
                f"on {count} others alike."
            )
            yield Finding(Kind.FIRMWARE, text, tuple(names))
