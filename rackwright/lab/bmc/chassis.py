"""Redfish's documents of the enclosure and its sensors. Their values are made up, and faults show in them."""

from __future__ import annotations

from rackwright.lab import qemu
from rackwright.lab.bmc.view import (
    CHASSIS,
    MANAGER,
    ROOT,
    SYSTEM,
    Document,
    View,
    collection,
    link,
    resource,
    status,
)

POWER_SUPPLY, FAN = "bmc:psu", "bmc:fan"
PARTS = {POWER_SUPPLY: ("PSU 2", "Power Supply"), FAN: ("Fan 1", "Fan")}
"""Fault -> the part that is broken, and the kind of sensor that the event log names."""
_IDLE_WATTS, _STANDBY_WATTS = 212, 14
_CAPACITY_WATTS = 1600
_TEMPERATURES = {"Inlet": (23, 18, 42), "CPU 1": (54, 24, 95), "Exhaust": (36, 20, 70)}
"""Celsius while it runs, while it does not, and the critical value."""


def all_chassis(_: View) -> Document:
    """The one enclosure."""
    return collection(f"{ROOT}/Chassis", "ChassisCollection", "Chassis", ["1"])


def chassis(view: View) -> Document:
    """The enclosure; its serial number is the machine's."""
    health = "Critical" if any(view.broken(fault) for fault in PARTS) else "OK"
    return resource(
        CHASSIS,
        "Chassis.v1_24_0.Chassis",
        f"Chassis of {view.node.name}",
        ChassisType="RackMount",
        Manufacturer=qemu.MANUFACTURER,
        Model=qemu.PRODUCT,
        SerialNumber=view.serial,
        PowerState=view.power,
        IndicatorLED=view.settings.indicator,
        Status={**status(health), "HealthRollup": health},
        Power=link(f"{CHASSIS}/Power"),
        Thermal=link(f"{CHASSIS}/Thermal"),
        Links={"ComputerSystems": [link(SYSTEM)], "ManagedBy": [link(MANAGER)]},
    )


def power(view: View) -> Document:
    """Consumption, and two power supplies."""
    path = f"{CHASSIS}/Power"
    watts = _IDLE_WATTS if view.power == "On" else _STANDBY_WATTS
    failed = view.broken(POWER_SUPPLY)
    control = {
        "@odata.id": f"{path}#/PowerControl/0",
        "MemberId": "0",
        "Name": "System Power Control",
        "PowerConsumedWatts": watts,
        "PowerCapacityWatts": _CAPACITY_WATTS,
        "Status": status(),
    }
    supplies = [_supply(path, 0, watts if failed else watts // 2, failed=False)]
    supplies.append(_supply(path, 1, 0 if failed else watts - watts // 2, failed=failed))
    return resource(path, "Power.v1_7_1.Power", "Power", PowerControl=[control], PowerSupplies=supplies)


def _supply(path: str, number: int, watts: int, *, failed: bool) -> Document:
    return {
        "@odata.id": f"{path}#/PowerSupplies/{number}",
        "MemberId": str(number),
        "Name": f"PSU {number + 1}",
        "PowerCapacityWatts": _CAPACITY_WATTS,
        "LineInputVoltage": 0 if failed else 230,
        "LastPowerOutputWatts": watts,
        "SerialNumber": f"PSU{number + 1}",
        "FirmwareVersion": "1.0",
        "Status": status("Critical" if failed else "OK", "UnavailableOffline" if failed else "Enabled"),
    }


def thermal(view: View) -> Document:
    """Temperatures and four fans."""
    path, on = f"{CHASSIS}/Thermal", view.power == "On"
    temperatures = [
        {
            "@odata.id": f"{path}#/Temperatures/{number}",
            "MemberId": str(number),
            "Name": name,
            "ReadingCelsius": running if on else resting,
            "UpperThresholdCritical": critical,
            "Status": status(),
        }
        for number, (name, (running, resting, critical)) in enumerate(_TEMPERATURES.items())
    ]
    fans = [_fan(path, number, on=on, failed=number == 0 and view.broken(FAN)) for number in range(4)]
    return resource(path, "Thermal.v1_7_1.Thermal", "Thermal", Temperatures=temperatures, Fans=fans)


def _fan(path: str, number: int, *, on: bool, failed: bool) -> Document:
    return {
        "@odata.id": f"{path}#/Fans/{number}",
        "MemberId": str(number),
        "Name": f"Fan {number + 1}",
        "Reading": 0 if failed or not on else 5400 + 60 * number,
        "ReadingUnits": "RPM",
        "LowerThresholdCritical": 1000,
        "Status": status("Critical" if failed else "OK"),
    }
