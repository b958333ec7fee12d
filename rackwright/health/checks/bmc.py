"""The node's BMC: power supplies, fans, temperatures, event log, power draw.

A lost power supply or fan does not take a node out of service: the others carry the load until it is replaced. An event
counts while it is recent and not deasserted; one without a time never counts. A node without ipmitool, or that cannot
reach its BMC, is out of scope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rackwright.health import bmc_words
from rackwright.health.bmc_records import BmcSection, BmcSensor
from rackwright.health.bmc_words import Event
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import Action, Finding, aside, fail, good, unknown, warn

SUPPLY = "Check the feed and the cable, then replace the supply; it can be hot-swapped if the others carry the load."
FAN = "Replace the fan at the next maintenance; until then watch the temperatures."
CLEAR = " After the repair: `ipmitool sel clear`."
DIMM = "Replace the DIMM that the BMC's log names." + CLEAR
SPEC = "IPMI 2.0, sensor types (table 42-3)"
HOUR = 3600.0
CLOCK_SET = 1262304000.0
"""2010: a BMC that has lost its clock begins at 1970 or 2000."""
AHEAD_SECONDS = 600.0
SHOWN = 4


def there(document: Document) -> BmcSection | Finding:
    """What the BMC reported, or that the node cannot reach one."""
    section = document.bmc
    if section.tool is None:
        return aside("ipmitool is not installed")
    if section.device is None:
        return aside("the node cannot reach a BMC: /dev/ipmi0 is missing")
    return section


@check(
    "bmc", "The node's BMC answers", reads=("bmc",), needs=("hardware",), action=Action.NONE,
    remedy="Reset it with `ipmitool mc reset cold`, which does not disturb the node. If it hangs again, drain the node and cut its power.",
    source="IPMI 2.0, Get Device ID; without its BMC a node that hangs cannot be power-cycled",
)  # fmt: skip
def bmc_answers(expected: Expected, document: Document) -> Iterator[Finding]:
    section = there(document)
    if isinstance(section, Finding):
        yield section
    elif section.why is not None:
        yield fail(section.why)
    else:
        yield good("it does")


def sensors(
    document: Document, kinds: tuple[str, ...], judge: Callable[[BmcSensor], Finding | None], what: str
) -> Iterator[Finding]:
    """Judge the sensors of these kinds; out of scope if the BMC has none."""
    section = there(document)
    if isinstance(section, Finding):
        yield section
        return
    section.need("sensors")
    found = [
        one
        for one in section.sensors
        if bmc_words.sensor_kind(one.name, one.unit, one.entity, one.text) in kinds
    ]
    if not found:
        yield aside(f"the BMC reports no {what}")
        return
    yield from each(found, judge, f"{len(found)} {what}")


@check(
    "bmc", "Every power supply works and has input", reads=("bmc",), needs=("hardware",), action=Action.NONE, remedy=SUPPLY,
    source=f"{SPEC}, 08h and 09h",
)  # fmt: skip
def bmc_supplies(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(sensor: BmcSensor) -> Finding | None:
        words = f"{sensor.name} ({sensor.entity}): {sensor.text}"
        if any(state in sensor.text for state in bmc_words.SUPPLY_FAILED):
            return fail(words)
        return warn(words) if any(state in sensor.text for state in bmc_words.SUPPLY_WARNS) else None

    yield from sensors(document, (bmc_words.SUPPLY,), judge, "power supplies")


@check(
    "bmc", "The power supplies are redundant", reads=("bmc",), needs=("hardware",), action=Action.NONE, remedy=SUPPLY,
    source="IPMI 2.0, generic event 0Bh; a server with one supply reports that its resources are sufficient",
)  # fmt: skip
def bmc_redundancy(expected: Expected, document: Document) -> Iterator[Finding]:
    yield from sensors(document, (bmc_words.SUPPLY_SET,), redundancy, "sets of power supplies")


def redundancy(sensor: BmcSensor) -> Finding | None:
    """A set of redundant parts."""
    words = f"{sensor.name}: {sensor.text}"
    if any(state in sensor.text for state in bmc_words.REDUNDANCY_LOST):
        return fail(words)
    return None if "Fully Redundant" in sensor.text and "from" not in sensor.text else warn(words)


@check(
    "bmc", "Every fan is above its critical speed", reads=("bmc",), needs=("hardware",), action=Action.NONE, remedy=FAN,
    source=f"the BMC's own thresholds; {SPEC}, 04h",
)  # fmt: skip
def bmc_fans(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(sensor: BmcSensor) -> Finding | None:
        words = f"{sensor.name}: {sensor.text}"
        if "edundan" in sensor.text:
            return redundancy(sensor)
        if any(state in sensor.text for state in bmc_words.FAN_FAILED):
            return fail(words)
        if sensor.state in bmc_words.BEYOND:
            return fail(f"{words}, beyond the BMC's critical threshold")
        return (
            warn(f"{words}, beyond the BMC's warning threshold") if sensor.state in bmc_words.NEAR else None
        )

    yield from sensors(document, (bmc_words.FAN, bmc_words.FAN_SET), judge, "fans")


@check(
    "bmc", "No temperature is beyond its critical threshold", reads=("bmc",), needs=("hardware",), action=Action.NONE,
    limits=("bmc_cold_c",), remedy="Check fans and inlet air. If many nodes have hot inlets, check the room's cooling.",
    source="the BMC's own thresholds; a part that gets too hot throttles, and the GPU and processor checks report it",
)  # fmt: skip
def bmc_temperatures(expected: Expected, document: Document) -> Iterator[Finding]:
    cold = expected.limit("bmc_cold_c")

    def judge(sensor: BmcSensor) -> Finding | None:
        if sensor.value is None:
            raise Unreadable(f"{sensor.name} reads {sensor.text!r}")
        low = bmc_words.is_low(sensor.name, sensor.state, sensor.value, cold)
        words = f"{sensor.name}: {sensor.text}, beyond the BMC's"
        if sensor.state in bmc_words.BEYOND:
            return warn(f"{words} low threshold") if low else fail(f"{words} critical threshold")
        return warn(f"{words} warning threshold") if sensor.state in bmc_words.NEAR else None

    yield from sensors(document, (bmc_words.TEMPERATURE,), judge, "temperatures")


@check(
    "bmc", "The chassis reports no fault", reads=("bmc",), needs=("hardware",), action=Action.NONE,
    remedy="Find the part with `ipmitool sdr elist` and `ipmitool sel elist`. If no part shows the fault, reset the BMC.",
    source="IPMI 2.0, Get Chassis Status: overload, main power, power control, drive, cooling",
)  # fmt: skip
def bmc_chassis(expected: Expected, document: Document) -> Iterator[Finding]:
    section = there(document)
    if isinstance(section, Finding):
        yield section
        return
    section.need("faults")
    for fault in section.faults:
        yield fail(fault)
    yield good("none")


@check(
    "bmc", "The BMC's event log has free space", reads=("bmc",), needs=("hardware",), action=Action.NONE,
    limits=("bmc_log_warn_percent", "bmc_log_full_percent"), remedy="Save it (`ipmitool sel save FILE`), then `ipmitool sel clear`.",
    source=f"{SPEC}, 10h: log almost full, log full; a full log misses the next fault",
)  # fmt: skip
def bmc_log_room(expected: Expected, document: Document) -> Iterator[Finding]:
    section = there(document)
    if isinstance(section, Finding):
        yield section
        return
    section.need("log")
    log = section.log
    most, much = expected.limit("bmc_log_full_percent"), expected.limit("bmc_log_warn_percent")
    if log.overflow:
        yield fail(f"events were lost: the log of {log.entries} entries is full")
    elif log.percent is None:
        yield aside("the BMC does not report how large its event log is")
    elif log.percent >= most:
        yield fail(f"{log.percent} % full")
    elif log.percent >= much:
        yield warn(f"{log.percent} % full")
    else:
        yield good(f"{log.percent} %")


@check(
    "bmc", "The BMC measures the node's power draw", reads=("bmc",), needs=("hardware",), action=Action.NONE,
    remedy="Turn it on: `ipmitool dcmi power activate`. If it reads 0 W, reset the BMC; some firmware does not measure power.",
    source="DCMI 1.5, Get Power Reading; out of scope if the BMC has no DCMI",
)  # fmt: skip
def bmc_power(expected: Expected, document: Document) -> Iterator[Finding]:
    section = there(document)
    if isinstance(section, Finding):
        yield section
        return
    section.need("power")
    power = section.power
    if not power.dcmi:
        yield aside("the BMC has no DCMI")
    elif power.active is False:
        yield warn("power measurement is switched off")
    elif power.watts is None or power.active is None:
        raise Unreadable("the BMC reports no power draw")
    elif power.watts <= 0:
        yield fail(f"{power.watts} W")
    else:
        yield good(f"{power.watts} W")


def events(
    expected: Expected, document: Document, kind: str, *, since_boot: bool = False
) -> Iterator[Finding]:
    """Recent events of a kind that were not deasserted; for parts that cannot be hot-swapped, every event since the last boot."""
    section = there(document)
    if isinstance(section, Finding):
        yield section
        return
    section.need("events")
    now = section.clock if section.clock is not None else document.taken_at
    events = [Event(one.at, f"{one.sensor}: {one.event}", one.asserted) for one in section.events]
    found = [one for one in bmc_words.standing(events) if bmc_words.critical(one.words) == kind]
    if found and now < CLOCK_SET:
        yield unknown(f"the BMC's clock is not set, and its log has {found[-1].words}")
        return
    seconds = expected.limit("bmc_event_hours") * HOUR
    if since_boot:
        seconds = max(seconds, section.uptime_s or 0.0)
    new = [one for one in found if bmc_words.fresh(one, now, seconds, AHEAD_SECONDS)]
    for one in new[-SHOWN:]:
        yield fail(f"{one.words}, {max(0.0, now - (one.at or now)) / HOUR:.1f} h ago")
    yield good(f"none; {len(found)} older" if found else "none")


@check(
    "bmc", "The BMC's log has no recent uncorrectable memory error", reads=("bmc",), needs=("hardware",), action=Action.RMA,
    limits=("bmc_event_hours",), remedy=DIMM, source=f"{SPEC}, 0Ch; as the kernel's own count, memory-uncorrected",
)  # fmt: skip
def bmc_log_memory(expected: Expected, document: Document) -> Iterator[Finding]:
    yield from events(expected, document, bmc_words.MEMORY, since_boot=True)


@check(
    "bmc", "The BMC's log has no recent processor error", reads=("bmc",), needs=("hardware",), limits=("bmc_event_hours",),
    remedy="Read the machine check (rasdaemon, the BMC's dump). If it recurs, replace the processor or the device it waited for." + CLEAR,
    source=f"{SPEC}, 07h: IERR, thermal trip, uncorrectable machine check; as cpu-machine-checks",
)  # fmt: skip
def bmc_log_processor(expected: Expected, document: Document) -> Iterator[Finding]:
    yield from events(expected, document, bmc_words.PROCESSOR)


@check(
    "bmc", "The BMC's log has no recent fatal PCIe error", reads=("bmc",), needs=("hardware",), action=Action.NONE,
    limits=("bmc_event_hours",), remedy="Find the device (`lspci -tv`) and reseat it. If it recurs, replace it." + CLEAR,
    source=f"{SPEC}, 13h; it rarely names the device, so pcie-log and pcie-uncorrected decide about the node",
)  # fmt: skip
def bmc_log_pcie(expected: Expected, document: Document) -> Iterator[Finding]:
    yield from events(expected, document, bmc_words.PCIE)


@check(
    "bmc", "The BMC's log has no recent power failure", reads=("bmc",), needs=("hardware",), action=Action.NONE,
    limits=("bmc_event_hours",), remedy=SUPPLY + CLEAR, source=f"{SPEC}, 08h and 09h",
)  # fmt: skip
def bmc_log_power(expected: Expected, document: Document) -> Iterator[Finding]:
    yield from events(expected, document, bmc_words.POWER)


@check(
    "bmc", "The BMC's log has no recent drive fault", reads=("bmc",), needs=("hardware",), action=Action.NONE,
    limits=("bmc_event_hours",), remedy="Compare with SMART and the arrays; replace the drive." + CLEAR, source=f"{SPEC}, 0Dh",
)  # fmt: skip
def bmc_log_drive(expected: Expected, document: Document) -> Iterator[Finding]:
    yield from events(expected, document, bmc_words.DRIVE)
