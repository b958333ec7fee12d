"""Power supplies, fans, temperatures and watts: readers of Redfish documents, old and new.

Until Redfish 2020.4 a chassis had two documents, Power and Thermal; since then PowerSubsystem, ThermalSubsystem,
EnvironmentMetrics and Sensors, with one document per part. The old ones are read first if they exist, because two requests
then replace fifty.
"""

from __future__ import annotations

from collections.abc import Iterable

from rackwright.bmc.documents import Document, condition, document, link, listed, number, sub, text
from rackwright.bmc.interface import BmcHealth, Condition, Part
from rackwright.bmc.redfish_log import log_room
from rackwright.bmc.redfish_tree import Tree

_PARTS_MAX = 48
_SENSORS_MAX = 256


def read_health(tree: Tree) -> BmcHealth:
    """Sensor readings of the BMC; parts that it fails to read are named in `unread`."""
    tree = tree.lenient()
    system = tree.system()
    supplies: list[Part] = []
    fans: list[Part] = []
    temperatures: list[Part] = []
    watts: list[float] = []
    for chassis in tree.chassis(system):
        power, thermal = tree.optional(link(chassis, "Power")), tree.optional(link(chassis, "Thermal"))
        found = supplies_of(power)
        supplies += found or new_supplies_of(tree.members(_supplies_path(tree, chassis), _PARTS_MAX))
        metrics = tree.optional(link(chassis, "EnvironmentMetrics")) if not (power and thermal) else {}
        found = fans_of(thermal)
        found = found or new_fans_of(tree.members(_fans_path(tree, chassis), _PARTS_MAX))
        fans += found or metric_fans_of(metrics)
        temperatures += temperatures_of(thermal) or _new_temperatures(tree, chassis)
        drawn = [watts_of(power), new_watts_of(metrics)]
        watts += [one for one in drawn if one is not None][:1]
    full, wraps = log_room(tree, system)
    return BmcHealth(
        overall=overall_of(system),
        power_supplies=tuple(supplies),
        fans=tuple(fans),
        temperatures=tuple(temperatures),
        power_watts=sum(watts) if watts else None,
        sel_full=full,
        sel_wraps=wraps,
        unread=tuple(tree.unread),
    )


def overall_of(system: Document) -> Condition:
    """The BMC's overall health: the rollup of all parts if it reports one."""
    rolled_up = {"Status": {"Health": sub(system, "Status").get("HealthRollup")}}
    verdict = condition(rolled_up)
    return verdict if verdict is not Condition.UNKNOWN else condition(system)


def supplies_of(power: Document) -> list[Part]:
    """Power supplies and their redundancy in a document Power."""
    found = [
        Part(
            _name(one, "power supply", place),
            condition(one),
            number(one, "PowerInputWatts", "LastPowerOutputWatts", "PowerOutputWatts"),
            "W",
        )
        for place, one in enumerate(listed(power, "PowerSupplies"))
    ]
    return found + (_redundancies(power, "Redundancy") if found else [])


def new_supplies_of(members: Iterable[Document]) -> list[Part]:
    """Power supplies, each a document of a PowerSubsystem."""
    return [
        Part(
            _name(one, "power supply", place),
            condition(one),
            number(sub(one, "InputPower"), "Reading"),
            "W",
        )
        for place, one in enumerate(members)
        if one
    ]


def fans_of(thermal: Document) -> list[Part]:
    """Fans in a document Thermal."""
    return [
        Part(
            _name(one, "fan", place),
            condition(one),
            number(one, "Reading", "CurrentReading"),
            "RPM" if (text(one, "ReadingUnits", "Units") or "").upper() == "RPM" else "%",
        )
        for place, one in enumerate(listed(thermal, "Fans"))
    ]


def new_fans_of(members: Iterable[Document]) -> list[Part]:
    """Fans, each a document of a ThermalSubsystem."""
    found = []
    for place, one in enumerate(one for one in members if one):
        speed = sub(one, "SpeedPercent")
        rpm = number(speed, "SpeedRPM")
        value = rpm if rpm is not None else number(speed, "Reading")
        found.append(Part(_name(one, "fan", place), condition(one), value, "%" if rpm is None else "RPM"))
    return found


def metric_fans_of(metrics: Document) -> list[Part]:
    """Fans in a document EnvironmentMetrics, which has no state for each."""
    return [
        Part(text(one, "DeviceName") or f"fan {place}", Condition.UNKNOWN, number(one, "Reading"), "%")
        for place, one in enumerate(listed(metrics, "FanSpeedsPercent"))
    ]


def temperatures_of(thermal: Document) -> list[Part]:
    """Temperatures in a document Thermal."""
    return [
        Part(_name(one, "temperature", place), condition(one), number(one, "ReadingCelsius"), "C")
        for place, one in enumerate(listed(thermal, "Temperatures"))
    ]


def sensor_temperatures_of(sensors: Iterable[Document]) -> list[Part]:
    """Temperatures among a chassis' Sensors."""
    return [
        Part(_name(one, "temperature", place), condition(one), number(one, "Reading"), "C")
        for place, one in enumerate(sensors)
        if text(one, "ReadingType") == "Temperature"
    ]


def metric_temperatures_of(metrics: Document) -> list[Part]:
    """Temperatures in a document ThermalMetrics, which has no state for each."""
    found = [
        Part(
            text(one, "DeviceName") or f"temperature {place}", Condition.UNKNOWN, number(one, "Reading"), "C"
        )
        for place, one in enumerate(listed(metrics, "TemperatureReadingsCelsius"))
    ]
    summary = sub(metrics, "TemperatureSummaryCelsius")
    return found or [
        Part(name, Condition.UNKNOWN, value, "C")
        for name in ("Intake", "Internal", "Exhaust", "Ambient")
        if (value := number(sub(summary, name), "Reading")) is not None
    ]


def watts_of(power: Document) -> float | None:
    """Power draw of the chassis, in a document Power."""
    controls = [number(one, "PowerConsumedWatts") for one in listed(power, "PowerControl")]
    return next((one for one in controls if one is not None), None)


def new_watts_of(metrics: Document) -> float | None:
    """Power draw of the chassis, in a document EnvironmentMetrics."""
    return number(sub(metrics, "PowerWatts"), "Reading")


def _new_temperatures(tree: Tree, chassis: Document) -> list[Part]:
    thermal = tree.optional(link(chassis, "ThermalSubsystem"))
    found = metric_temperatures_of(tree.optional(link(thermal, "ThermalMetrics")))
    return found or sensor_temperatures_of(tree.members(link(chassis, "Sensors"), _SENSORS_MAX))


def _supplies_path(tree: Tree, chassis: Document) -> str | None:
    return link(tree.optional(link(chassis, "PowerSubsystem")), "PowerSupplies")


def _fans_path(tree: Tree, chassis: Document) -> str | None:
    return link(tree.optional(link(chassis, "ThermalSubsystem")), "Fans")


def _redundancies(doc: Document, name: str) -> list[Part]:
    """Degraded redundancy sets, as parts."""
    found = [Part(text(one, "Name") or "redundancy", condition(one)) for one in listed(document(doc), name)]
    return [one for one in found if one.state in (Condition.WARNING, Condition.CRITICAL)]


def _name(one: Document, kind: str, place: int) -> str:
    return text(one, "Name", "FanName", "MemberId", "Id") or f"{kind} {place}"
