"""Switches, PDUs and UPSes, by SNMP."""

from __future__ import annotations

from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_SNMP = frozenset({"snmp"})
_NAME = "{{ $labels.switch }}{{ $labels.device }}"
"""A device has one of the two labels."""
_UPS_SHUTDOWN = """
    - Less than 10 minutes: shut down workers first. `scontrol update NodeName=ALL State=DRAIN Reason="power"`, then
      `ipmitool -I lanplus -H BMC -U USER -a chassis power soft` for each; storage next, heads last.
"""

_DOWN = Alert(
    name="SnmpDeviceDown",
    expr='up{job="snmp",kind!=""} == 0 unless on () up{job="snmp",kind=""} == 0',
    hold_seconds=300,
    severity=Severity.WARNING,
    summary=f"{{{{ $labels.kind }}}} {_NAME} does not answer",
    description=prose(f"""
        {{{{ $labels.kind }}}} {_NAME} ({{{{ $labels.instance }}}}) has not answered SNMP for 5 minutes. Ping it; if nodes behind it are
        down too, go to the device.
    """),
    means="The device is off or unreachable, or its SNMP agent or credentials are at fault. Alone it harms no job.",
    steps=listed("""
        - `ping ADDRESS`. It answers: `snmpget -v3 -u USER -l authPriv ADDRESS 1.3.6.1.2.1.1.3.0`. Were the credentials changed?
        - It does not: LeafDown or RackDown at the same time? Then it has failed; see their pages.
        - Alone: its management port or the switch before it.
        - An agent that hangs: most devices can restart SNMP by itself, without traffic being lost.
    """),
    jobs=_SNMP,
)

_PORT_DOWN = Alert(
    name="SwitchPortDown",
    expr="""
ifOperStatus{job="snmp",kind="switch"} != 1 and ifAdminStatus{job="snmp",kind="switch"} == 1
and min_over_time(ifOperStatus{job="snmp",kind="switch"}[1d]) == 1
""",
    hold_seconds=900,
    severity=Severity.WARNING,
    summary="Switch {{ $labels.switch }}: port {{ $labels.ifName }} is down",
    description=prose("""
        Port {{ $labels.ifName }} ({{ $labels.ifAlias }}) of {{ $labels.switch }} was up within the last day and is down. A node behind it has
        its own alert; for an uplink, capacity is lost. See what is at the other end.
    """),
    means="The link was lost, or what is at its other end was switched off. It resolves after a day, or when the port is up. "
    "It is held for longer than a node takes to reboot.",
    steps=listed("""
        - What is at the other end: the port's alias, `rackwright fabric show FILE`, LLDP on the switch.
        - A node that is down or was removed on purpose: no action is needed here.
        - An uplink: light levels at both ends, then cable and modules.
        - Not in use any more: shut the port in the switch's configuration.
    """),
    jobs=_SNMP,
)

_PORT_ERRORS = Alert(
    name="SwitchPortErrors",
    expr='increase(ifInErrors{job="snmp",kind="switch"}[1h]) > <packets>',
    hold_seconds=0,
    severity=Severity.WARNING,
    summary='Switch {{ $labels.switch }}: {{ $value | printf "%.0f" }} damaged packets on {{ $labels.ifName }} within an hour',
    description=prose("""
        Port {{ $labels.ifName }} ({{ $labels.ifAlias }}) of {{ $labels.switch }} received {{ $value | printf "%.0f" }} damaged packets within an
        hour. The cable, or the module at the other end, is going bad.
    """),
    means="What the switch receives damaged, the other end sent or the cable damaged. TCP and RoCE slow down.",
    steps=listed("""
        - Clear the counters, wait ten minutes: do they grow still?
        - Light levels of both modules; clean and reseat; then replace cable and modules, one at a time.
        - Errors on many ports of one switch: damage that it passes on (cut-through). Follow them to the port where they begin.
    """),
    jobs=_SNMP,
    thresholds={
        "packets": Threshold(
            100,
            "packets",
            "Damaged packets within an hour.",
            "rackwright, health checks, nic_errors, for a node's end (2026-11-23)",
        )
    },
)

_BATTERY = Alert(
    name="UpsOnBattery",
    expr='upsEstimatedMinutesRemaining{job="snmp"} and on (instance) upsOutputSource{job="snmp"} == 5',
    hold_seconds=30,
    severity=Severity.CRITICAL,
    summary=f"UPS {_NAME} runs on its battery, {{{{ $value }}}} min left",
    description=prose(f"""
        The mains of UPS {_NAME} have failed; its battery lasts another {{{{ $value }}}} min at this load. Call facilities, and be ready
        to shut down what it feeds.
    """),
    means="When the battery is empty everything behind it loses power at once, state in memory included.",
    steps=listed(f"""
        - Call facilities: how long? Does a generator start?
        - Stop new jobs: `scontrol update PartitionName=NAME State=DOWN`.
        {_UPS_SHUTDOWN}
        - Power is back: see that the battery charges, then resume partitions and nodes.
    """),
    jobs=_SNMP,
    source="upsOutputSource 5 is battery: RFC 1628, as several public tools have it (read 2026-11-27)",
)

_BATTERY_LOW = Alert(
    name="UpsBatteryLow",
    expr='upsBatteryStatus{job="snmp"} >= 3',
    hold_seconds=0,
    severity=Severity.CRITICAL,
    summary=f"UPS {_NAME}: the battery is low",
    description=prose(f"""
        The battery of UPS {_NAME} is low or depleted. On battery, what it feeds goes off within minutes: shut it down now. On mains, the
        battery is worn out and has to be replaced.
    """),
    means="Below the UPS's own limit. It will not carry the load through a power cut.",
    steps=listed(f"""
        - UpsOnBattery fires too? Shut down now.
        {_UPS_SHUTDOWN}
        - On mains for hours and still low: the battery does not charge. Have it tested and replaced.
    """),
    jobs=_SNMP,
    source="upsBatteryStatus 3 is low, 4 depleted: RFC 1628, as several public tools have it (read 2026-11-27)",
)

_LOAD = Alert(
    name="UpsOverloaded",
    expr='upsOutputPercentLoad{job="snmp"} > <percent>',
    hold_seconds=600,
    severity=Severity.WARNING,
    summary=f"UPS {_NAME} is at {{{{ $value }}}} % of its load",
    description=prose(f"""
        Line {{{{ $labels.upsOutputLineIndex }}}} of UPS {_NAME} has been above <percent> % of its load for 10 minutes, now {{{{ $value }}}} %. One
        more node may switch it to bypass, and the battery lasts minutes less. Move load to another feed.
    """),
    means="Electrical codes and makers ask for a margin; a UPS that carries the load of a failed twin as well has to hold both.",
    steps=listed("""
        - Is its twin of an A/B pair off, so that this one carries both? Repair that one.
        - Which nodes were added? Move them to another feed, or cap their power (`nvidia-smi -pl`).
    """),
    jobs=_SNMP,
    thresholds={
        "percent": Threshold(
            80,
            "percent",
            "Load of one output line.",
            "rackwright: continuous load of a feed, the usual 80 % (2026-11-27)",
        )
    },
)

_PDU = Alert(
    name="PduOverloaded",
    expr="""
rPDU2DeviceStatusLoadState{job="snmp"} >= 3 < 5 or rPDU2PhaseStatusLoadState{job="snmp"} >= 3 < 5
or measurementsInletSensorState{job="snmp"} >= 5 < 7
""",
    hold_seconds=60,
    severity=Severity.CRITICAL,
    summary=f"PDU {_NAME} is near or above its limit",
    description=prose(f"""
        PDU {_NAME} in rack {{{{ $labels.rack }}}} reports a load near or above its limit. Its breaker trips next, and the rack is down. Take
        load off: drain nodes, or cap their power.
    """),
    means="Limits are those set in the PDU. With A/B feeds, the loss of one moves all load to the other.",
    steps=listed("""
        - Is the rack's other PDU off (SnmpDeviceDown, PsuFailed)? Then this one carries all: repair that first.
        - Power per node (power dashboard). Cap the largest: `nvidia-smi -pl WATTS` on their GPUs.
        - Drain nodes until it is below: `scontrol update NodeName=NODE State=DRAIN Reason="PDU"`.
        - Phases are uneven: move cords between phases in the next maintenance.
    """),
    jobs=_SNMP,
    source="APC PowerNet-MIB: 3 near overload, 4 overload, 5 not supported; Raritan PDU2-MIB: 5 and 6 above the upper limits (unconfirmed: from memory of the MIBs, 2026-11-27)",
)

GROUP = RuleGroup("devices", (_DOWN, _PORT_DOWN, _PORT_ERRORS, _BATTERY, _BATTERY_LOW, _LOAD, _PDU))
