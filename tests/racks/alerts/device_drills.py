"""Drills of the alerts about power, cooling, switches, PDUs and UPSes: one fault of a simulated device for each."""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.drill.choose import head, other_worker, worker
from rackwright.drill.model import Drill, Shell
from tests.racks import simulated_devices as simulated
from tests.racks.alerts.devices import (
    APC,
    BMC,
    BMC_HOST,
    BMC_UNIT,
    LEAF,
    PORTS,
    RARITAN,
    SECRETS,
    UPS,
    SnmpDevice,
)

_SENSORS = {one.name: one for one in simulated.SENSORS}
_DARK = "rackwright-drill"
_NODE_DOWN_SECONDS = 40
"""By then NodeDown fires, which suppresses other alerts of the node."""
_EVENT = "sel_add 0x20 2 1 2 3 4 0x20 0 4 4 3 1 0x57 0xff 0xff"
"""An event of a fan (IPMI 2.0, table 32-1)."""


def _sensor(alert: str, fault: str, name: str, raw: int) -> Drill:
    """Sets a sensor of worker1's BMC."""
    one = _SENSORS[name]
    shell = Shell(f"echo {raw} > {one.file}", f"echo {one.value} > {one.file}")
    return Drill(alert, fault, worker, shell, labels={"name": name})


def _refusing() -> Shell:
    """The BMC's user gets another password."""

    def changed(old: str, new: str) -> str:
        return f"sed -i 's/{old}/{new}/' {simulated.LAN}; systemctl restart {BMC_UNIT}"

    password = SECRETS["bmc_monitor_password"]
    return Shell(changed(password, "another"), changed("another", password))


def _unplugged(namespace: str) -> Shell:
    """Pulls the cable of a device."""
    port = f"ip -n {namespace} link set eth0"
    return Shell(f"{port} down", f"{port} up")


def _powered_off() -> Shell:
    """Cuts the worker off from the network; its BMC still answers, and reports the power as off once NodeDown fires."""
    chain = f"nft add chain inet {_DARK}"
    return Shell(
        f"nft add table inet {_DARK}; {chain} input '{{ type filter hook input priority -300; policy drop; }}'; "
        f"{chain} output '{{ type filter hook output priority -300; policy drop; }}'; "
        f"sleep {_NODE_DOWN_SECONDS}; echo 0 > {simulated.POWER}",
        f"echo 1 > {simulated.POWER}; nft delete table inet {_DARK} 2>/dev/null || :",
    )


def _log_full() -> Shell:
    """Fills the event log up to the last 20 entries."""
    kept, restart = f"{simulated.EMULATION}.healthy", f"systemctl restart {BMC_UNIT}"
    return Shell(
        f"cp {simulated.EMULATION} {kept}; for entry in $(seq {simulated.SEL_ENTRIES - 20}); do echo '{_EVENT}'; done "
        f">> {simulated.EMULATION}; {restart}",
        f"[ ! -e {kept} ] || mv {kept} {simulated.EMULATION}; {restart}",
    )


def _object(device: SnmpDevice, changed: Mapping[str, int]) -> Shell:
    """Changes values of objects; snmpd reads them when it starts."""
    edits = " ".join(f"-e 's/^\\(override {oid} [a-z]*\\) .*/\\1 {value}/'" for oid, value in changed.items())
    files = f"{device.folder}/healthy.conf", f"{device.folder}/now.conf"
    restart = f"systemctl restart {device.unit}"
    return Shell(f"sed {edits} {files[0]} > {files[1]}; {restart}", f"cp {files[0]} {files[1]}; {restart}")


def _snmp(alert: str, fault: str, device: SnmpDevice, act: Shell, port: str | None = None) -> Drill:
    labels = {"switch" if device.kind == "switch" else "device": device.name}
    if port is not None:
        labels["ifName"] = port
    return Drill(alert, fault, other_worker, act, labels=labels, names_node=False)


BMC_REFUSES, LEAF_UNPLUGGED = _refusing(), _unplugged(LEAF.name)
FAN = _sensor("FanFailed", "a fan at 300 rpm", "FAN1", 3)
BMC_DRILLS = (
    FAN,
    _sensor("PsuFailed", "a power supply reports a failure", "PS2 Status", 3),
    _sensor("InletTemperatureHigh", "inlet air at 36 C", "Inlet Temp", 36),
    _sensor("BmcSensorCritical", "a CPU at 96 C", "CPU1 Temp", 96),
    Drill("BmcEventLogFull", "the event log has room for 18 more", worker, _log_full()),
    Drill("BmcUnreachable", "the BMC's cable is pulled", worker, _unplugged(BMC)),
    Drill("BmcUnreachable", "the BMC refuses the password", worker, BMC_REFUSES),
    Drill(
        "BmcReadingFails",
        "the exporter may not run ipmi-sel",
        head,
        Shell("chmod 750 /usr/sbin/ipmi-sel", "chmod 755 /usr/sbin/ipmi-sel"),
        labels={"node": BMC_HOST, "collector": "sel"},
        names_node=False,
    ),
    Drill("NodePoweredOff", "a node is switched off", worker, _powered_off()),
)
SNMP_DRILLS = (
    _snmp("UpsOnBattery", "the UPS runs on its battery", UPS, _object(UPS, {simulated.UPS_SOURCE: 5})),
    _snmp("UpsBatteryLow", "the UPS' battery is low", UPS, _object(UPS, {simulated.UPS_BATTERY: 3})),
    _snmp("UpsOverloaded", "the UPS carries 85 %", UPS, _object(UPS, {simulated.UPS_LOAD: 85})),
    _snmp("PduOverloaded", "a PDU near its limit (APC)", APC, _object(APC, {simulated.APC_LOAD: 3})),
    _snmp(
        "PduOverloaded",
        "a PDU above its limit (Raritan)",
        RARITAN,
        _object(RARITAN, {simulated.RARITAN_STATE: 6}),
    ),
    _snmp(
        "SwitchPortDown",
        "the other end of a switch's port goes down",
        LEAF,
        Shell(
            f"ip -n {LEAF.name} link set {PORTS[1]} down",
            f"ip -n {LEAF.name} link set {PORTS[1]} up",
        ),
        PORTS[0],
    ),
    _snmp(
        "SwitchPortErrors",
        "a port counts 5000 damaged packets",
        LEAF,
        _object(LEAF, {simulated.IN_ERRORS: 5007}),
        PORTS[0],
    ),
    _snmp("SnmpDeviceDown", "a switch's management cable is pulled", LEAF, LEAF_UNPLUGGED),
)
DEVICE_DRILLS: tuple[Drill, ...] = (*BMC_DRILLS, *SNMP_DRILLS)
