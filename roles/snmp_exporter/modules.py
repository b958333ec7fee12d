"""Modules of snmp_exporter: which objects are read, by their numbers. Pure.

Numbers: RFC 2863 (IF-MIB), RFC 3418 (SNMPv2-MIB), RFC 3433 (ENTITY-SENSOR-MIB), RFC 6933 (ENTITY-MIB), RFC 1628
(UPS-MIB); APC's PowerNet-MIB and Raritan's PDU2-MIB as the generator of snmp_exporter reads them. All read 2026-11-27.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Index:
    """A column that identifies the rows of a table."""

    name: str
    words: tuple[tuple[int, str], ...] = ()
    """What its numbers mean; empty: they are numbers."""


@dataclass(frozen=True)
class Lookup:
    """A text of the same table, as a label."""

    name: str
    oid: str


@dataclass(frozen=True)
class Metric:
    """One object: a scalar, or a column of a table."""

    name: str
    oid: str
    help: str
    type: Literal["counter", "gauge", "DisplayString"] = "gauge"
    indexes: tuple[Index, ...] = ()
    lookups: tuple[Lookup, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """As snmp.yml has it."""
        data: dict[str, Any] = {"name": self.name, "oid": self.oid, "type": self.type, "help": self.help}
        if self.indexes:
            data["indexes"] = [_index(one) for one in self.indexes]
        if self.lookups:
            data["lookups"] = [
                {
                    "labels": [index.name for index in self.indexes],
                    "labelname": one.name,
                    "oid": one.oid,
                    "type": "DisplayString",
                }
                for one in self.lookups
            ]
        return data


def _index(index: Index) -> dict[str, Any]:
    if not index.words:
        return {"labelname": index.name, "type": "gauge"}
    return {"labelname": index.name, "type": "EnumAsInfo", "enum_values": dict(index.words)}


_IF, _IFX = "1.3.6.1.2.1.2.2.1", "1.3.6.1.2.1.31.1.1.1"
_PORT = (Index("ifIndex"),)
_PORT_NAMES = (Lookup("ifName", f"{_IFX}.1"), Lookup("ifAlias", f"{_IFX}.18"))
_SENSOR = "1.3.6.1.2.1.99.1.1.1"
_UPS = "1.3.6.1.2.1.33.1"
_APC = "1.3.6.1.4.1.318.1.1.26"
_RARITAN = "1.3.6.1.4.1.13742.6.5.2.3.1"
_RARITAN_SENSORS = (
    (1, "rmsCurrent"),
    (4, "rmsVoltage"),
    (5, "activePower"),
    (6, "apparentPower"),
    (7, "powerFactor"),
    (8, "activeEnergy"),
    (23, "frequency"),
)


def _port(column: str, name: str, text: str, kind: Literal["counter", "gauge"] = "counter") -> Metric:
    return Metric(name, column, text, kind, _PORT, _PORT_NAMES)


def _sensor(column: int, name: str, text: str) -> Metric:
    names = (Lookup("entPhysicalName", "1.3.6.1.2.1.47.1.1.1.1.7"),)
    return Metric(name, f"{_SENSOR}.{column}", text, "gauge", (Index("entPhysicalIndex"),), names)


def _apc(column: str, name: str, text: str, index: str) -> Metric:
    return Metric(name, f"{_APC}.{column}", text, "gauge", (Index(index),))


def _raritan(column: int, name: str, text: str) -> Metric:
    rows = (Index("pduId"), Index("inletId"), Index("sensorType", _RARITAN_SENSORS))
    return Metric(name, f"{_RARITAN}.{column}", text, "gauge", rows)


MODULES: dict[str, tuple[Metric, ...]] = {
    "system": (
        Metric("sysUpTime", "1.3.6.1.2.1.1.3", "Hundredths of a second since its SNMP agent started"),
        Metric("sysName", "1.3.6.1.2.1.1.5", "The device's own name", "DisplayString"),
    ),
    "if_mib": (
        _port(f"{_IF}.7", "ifAdminStatus", "Configured state of the port: 1 up, 2 down, 3 testing", "gauge"),
        _port(
            f"{_IF}.8", "ifOperStatus", "Actual state of the port: 1 up, 2 down, 7 lower layer down", "gauge"
        ),
        _port(f"{_IF}.9", "ifLastChange", "sysUpTime of the port's last state change", "gauge"),
        _port(f"{_IF}.13", "ifInDiscards", "Intact inbound packets that were dropped"),
        _port(f"{_IF}.14", "ifInErrors", "Inbound packets with errors"),
        _port(f"{_IF}.19", "ifOutDiscards", "Intact outbound packets that were dropped"),
        _port(f"{_IF}.20", "ifOutErrors", "Outbound packets that could not be sent because of errors"),
        _port(f"{_IFX}.6", "ifHCInOctets", "Bytes received"),
        _port(f"{_IFX}.7", "ifHCInUcastPkts", "Packets received for one address"),
        _port(f"{_IFX}.8", "ifHCInMulticastPkts", "Packets received for a group"),
        _port(f"{_IFX}.9", "ifHCInBroadcastPkts", "Packets received for everyone"),
        _port(f"{_IFX}.10", "ifHCOutOctets", "Bytes sent"),
        _port(f"{_IFX}.11", "ifHCOutUcastPkts", "Packets sent to one address"),
        _port(f"{_IFX}.15", "ifHighSpeed", "Current port speed in Mbit/s", "gauge"),
    ),
    "entity_sensor": (
        _sensor(
            1, "entPhySensorType", "What it measures: 3 V AC, 4 V DC, 5 A, 6 W, 7 Hz, 8 degrees C, 10 rpm"
        ),
        _sensor(2, "entPhySensorScale", "Thousands of its unit: 7 10^-6, 8 10^-3, 9 1, 10 10^3, 11 10^6"),
        _sensor(3, "entPhySensorPrecision", "Decimal places of its value"),
        _sensor(4, "entPhySensorValue", "Its value, without the decimal point"),
        _sensor(5, "entPhySensorOperStatus", "1 working, 2 unknown, 3 broken"),
    ),
    "ups_mib": (
        Metric("upsBatteryStatus", f"{_UPS}.2.1", "1 unknown, 2 normal, 3 low, 4 depleted"),
        Metric("upsSecondsOnBattery", f"{_UPS}.2.2", "Seconds on battery; 0 when not on battery"),
        Metric("upsEstimatedMinutesRemaining", f"{_UPS}.2.3", "Minutes until the battery is empty"),
        Metric("upsEstimatedChargeRemaining", f"{_UPS}.2.4", "Charge of the battery in %"),
        Metric("upsBatteryVoltage", f"{_UPS}.2.5", "Tenths of a volt of the battery"),
        Metric("upsBatteryTemperature", f"{_UPS}.2.7", "Degrees C of the battery"),
        Metric(
            "upsInputVoltage", f"{_UPS}.3.3.1.3", "Input voltage in V", "gauge", (Index("upsInputLineIndex"),)
        ),
        Metric("upsOutputSource", f"{_UPS}.4.1", "What feeds the load: 3 mains, 4 bypass, 5 battery"),
        Metric(
            "upsOutputPower",
            f"{_UPS}.4.4.1.4",
            "Output power in W",
            "gauge",
            (Index("upsOutputLineIndex"),),
        ),
        Metric(
            "upsOutputPercentLoad",
            f"{_UPS}.4.4.1.5",
            "Load in % of capacity",
            "gauge",
            (Index("upsOutputLineIndex"),),
        ),
        Metric("upsAlarmsPresent", f"{_UPS}.6.1", "Number of active alarms"),
    ),
    "apc_pdu": (
        _apc(
            "4.3.1.4",
            "rPDU2DeviceStatusLoadState",
            "1 low load, 2 normal, 3 near overload, 4 overload",
            "rPDU2DeviceStatusIndex",
        ),
        _apc(
            "4.3.1.5",
            "rPDU2DeviceStatusPower",
            "Power in hundredths of a kilowatt",
            "rPDU2DeviceStatusIndex",
        ),
        _apc(
            "6.3.1.4",
            "rPDU2PhaseStatusLoadState",
            "1 low load, 2 normal, 3 near overload, 4 overload",
            "rPDU2PhaseStatusIndex",
        ),
        _apc("6.3.1.5", "rPDU2PhaseStatusCurrent", "Tenths of an ampere", "rPDU2PhaseStatusIndex"),
        _apc("6.3.1.6", "rPDU2PhaseStatusVoltage", "Volts", "rPDU2PhaseStatusIndex"),
    ),
    "raritan_pdu": (
        _raritan(3, "measurementsInletSensorState", "4 normal, 3 and 5 near a limit, 2 and 6 beyond one"),
        _raritan(4, "measurementsInletSensorValue", "Its value, without the decimal point"),
    ),
}
"""By name: metrics have the names of their MIBs, and the values that the devices send."""

KINDS: dict[str, tuple[str, ...]] = {
    "switch": ("system", "if_mib", "entity_sensor"),
    "ups": ("system", "ups_mib"),
    "pdu": (),
}
"""Default modules of a kind of device; PDUs have no common MIB."""


def modules_data() -> dict[str, Any]:
    """The section `modules` of snmp.yml."""
    return {name: _module(metrics) for name, metrics in MODULES.items()}


def _module(metrics: tuple[Metric, ...]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if scalars := [f"{one.oid}.0" for one in metrics if not one.indexes]:
        data["get"] = scalars
    if columns := list(_walked(metrics)):
        data["walk"] = columns
    data["metrics"] = [one.to_data() for one in metrics]
    data["max_repetitions"] = 25
    data["retries"] = 3
    data["timeout"] = "5s"
    return data


def _walked(metrics: tuple[Metric, ...]) -> Iterator[str]:
    """Columns and the texts of their labels, each once and in order."""
    found = {one.oid for one in metrics if one.indexes}
    found |= {lookup.oid for one in metrics for lookup in one.lookups}
    yield from sorted(found, key=lambda oid: [int(part) for part in oid.split(".")])
