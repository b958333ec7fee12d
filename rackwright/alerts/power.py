"""Power, cooling and sensors as the BMC reports them."""

from __future__ import annotations

from rackwright.alerts import steps
from rackwright.alerts.promql import NODE_DOWN, PLACE
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_IPMI = frozenset({"ipmi"})
_SDR = "`ipmitool -I lanplus -H BMC -U USER -a sdr elist` (or `ipmitool sdr elist` on the node) shows all sensors."
_PARTS = "(?i).*(psu|p/s|ps ?[0-9]|power|pci|gpu|nic|ocp|hdd|drive).*"
"""Sensors at the inlet of a part and not of the chassis, e.g. HPE's `P/S 1 Inlet`: the air there is warmer."""
_STATES = "States are FreeIPMI's: 0 nominal, 1 warning, 2 critical: ipmi_exporter 1.10, docs/metrics.md (read 2026-11-27)"

_NO_ANSWER = f"""
max by ({PLACE}) (ipmi_up{{job="ipmi"}}) == 0
or max by ({PLACE}) (up{{job="ipmi"}}) == 0 unless on () (max(up{{job="ipmi"}}) == 0 and count(up{{job="ipmi"}}) > 1)
"""
"""If none of several BMCs can be read, the exporter is at fault: ProbeExporterDown."""

_UNREACHABLE = Alert(
    name="BmcUnreachable",
    expr=_NO_ANSWER,
    hold_seconds=600,
    severity=Severity.WARNING,
    summary="The BMC of {{ $labels.node }} does not answer",
    description=prose("""
        The BMC of {{ $labels.node }} has not answered for 10 minutes. If the node hangs now, you cannot see its console or
        power-cycle it remotely. Reset the BMC from the node: ipmitool mc reset cold.
    """),
    means="BMCs hang now and then. The node itself is not affected.",
    steps=listed("""
        - `ping BMC`. Many at once: the BMC network or its switch.
        - It answers ping: `ipmitool -I lanplus -H BMC -U USER -a mc info`. A password that was changed?
        - On the node: `ipmitool mc info`, `ipmitool lan print 1`. Reset it: `ipmitool mc reset cold`; it is back in 2 minutes.
        - It stays away: power the node off fully at the PDU for a minute, in the next maintenance.
    """),
    jobs=_IPMI,
)

_UNREADABLE = Alert(
    name="BmcReadingFails",
    expr=f'(ipmi_up{{job="ipmi"}} == 0) unless on (node) ({_NO_ANSWER})',
    hold_seconds=1800,
    severity=Severity.WARNING,
    summary="The BMC of {{ $labels.node }} answers, but not about: {{ $labels.collector }}",
    description=prose("""
        The BMC of {{ $labels.node }} answers, and the exporter's collector {{ $labels.collector }} has read nothing from it for 30 minutes. Alerts
        that need these figures cannot fire for this node. See why: journalctl -u prometheus-ipmi-exporter on the node that reads it.
    """),
    means=prose("""
        `ipmi` reads sensors (power supplies, fans, temperatures), `sel` the event log, `dcmi` the power draw, `chassis` whether the node is
        on. The rest of the BMC's figures are there, so that nothing else shows that these are missing.
    """),
    steps=listed(f"""
        - `journalctl -u 'prometheus-ipmi-exporter' -g COLLECTOR -n 10` on the head, or on the node where it reads its own BMC.
        - {_SDR} Does it hang or fail? Reset the BMC: `ipmitool mc reset cold`.
        - `dcmi`, on every node of a model: the BMC has no DCMI. Leave it out: `ipmi_exporter.collectors`.
        - `privilege level insufficient`: raise `ipmi_exporter.privilege`.
    """),
    jobs=_IPMI,
)

_OFF = Alert(
    name="NodePoweredOff",
    expr=f'max by ({PLACE}) (ipmi_chassis_power_state{{job="ipmi"}}) == 0 and on (node) {NODE_DOWN}',
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="{{ $labels.node }} is powered off",
    description=prose("""
        The BMC of {{ $labels.node }} answers and reports that the node is off. Read its event log for the reason, then power it on:
        ipmitool -I lanplus -H BMC -U USER -a chassis power on.
    """),
    means="Possible causes: an operator, a power cap, a thermal trip, a failed power supply.",
    steps=listed(f"""
        - {steps.SEL}
        - A thermal trip: check inlet and fans first; see InletTemperatureHigh, FanFailed.
        - Power supplies: see PsuFailed.
        - `ipmitool -I lanplus -H BMC -U USER -a chassis power on`, and watch the console: `sol activate`.
        - {steps.RESUME}
    """),
    jobs=frozenset({"ipmi", "node"}),
)

_PSU = Alert(
    name="PsuFailed",
    expr='ipmi_sensor_state{job="ipmi",type="Power Supply"} == 2',
    hold_seconds=60,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: power supply {{ $labels.name }} has failed",
    description=prose("""
        The BMC of {{ $labels.node }} reports {{ $labels.name }} as failed or without input. The node runs on the others; under full load
        they may not be enough. Check its cord and feed, then replace it.
    """),
    means="Redundancy is gone. GPUs may be held back by the power brake (GpuThrottledByBoard).",
    steps=listed(f"""
        - {_SDR} One supply or several? All on one feed: see the PDU, PduOverloaded, SnmpDeviceDown.
        - `Power Supply AC lost`: cord, outlet or breaker. `Failure detected`: the supply itself.
        - Have it reseated, then replaced; it can be done while the node runs.
        - {steps.SEL}
    """),
    jobs=_IPMI,
    source=_STATES,
)

_FAN = Alert(
    name="FanFailed",
    expr='ipmi_fan_speed_state{job="ipmi"} == 2',
    hold_seconds=60,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: fan {{ $labels.name }} has failed",
    description=prose("""
        The BMC of {{ $labels.node }} reports fan {{ $labels.name }} beyond its critical limit. The others run faster, and GPUs behind
        it get hot. Have it replaced, and watch GpuHot.
    """),
    means="A fan that stands still or turns too slowly. Most chassis survive one, under full load not always.",
    steps=listed(f"""
        - {_SDR} 0 RPM, or slow?
        - GPUs of the node are hot or throttled (GpuHot, GpuThrottledByHeat): {steps.then(steps.DRAIN)}
        - Have the fan replaced; in most chassis that is done while the node runs, within the minutes its manual allows.
    """),
    jobs=_IPMI,
    source=_STATES,
)

_INLET = Alert(
    name="InletTemperatureHigh",
    expr=f'ipmi_temperature_celsius{{job="ipmi",name=~"(?i).*(inlet|ambient).*",name!~"{_PARTS}"}} > <celsius>',
    hold_seconds=300,
    severity=Severity.CRITICAL,
    summary='{{ $labels.node }}: inlet air is at {{ $value | printf "%.0f" }} °C',
    description=prose("""
        The inlet of {{ $labels.node }} in rack {{ $labels.rack }} reads {{ $value | printf "%.0f" }} °C. GPUs throttle, and nodes shut off
        next. If it is more than one node, call facilities now.
    """),
    means="The room's cooling has failed or does not reach the rack, or hot air flows back. Temperatures can rise a degree a minute.",
    steps=listed("""
        - How many nodes and racks (power and cooling dashboard)? All of a row: call facilities.
        - It rises on: stop new jobs, `scontrol update PartitionName=NAME State=DOWN`, and lower power: `nvidia-smi -pl WATTS` on the
          nodes of the row.
        - Above 40 °C, power the row's workers off before they trip: `scontrol update NodeName=NODESET State=DRAIN
          Reason="cooling"`, then `ipmitool -I lanplus -H BMC -U USER -a chassis power soft` for each.
        - One node or rack: a missing blanking panel, a blocked door, a cable bundle in the air's way.
        - After it: resume partition and nodes, and `rackwright verify FILE`.
    """),
    jobs=_IPMI,
    thresholds={
        "celsius": Threshold(
            32,
            "°C",
            "Temperature of the air at the inlet.",
            "ASHRAE TC 9.9, class A1: 15 to 32 °C allowable (unconfirmed: one secondary source, 2026-11-27)",
        )
    },
)

_SENSOR = Alert(
    name="BmcSensorCritical",
    expr="""
ipmi_temperature_state{job="ipmi"} == 2 or ipmi_voltage_state{job="ipmi"} == 2 or ipmi_power_state{job="ipmi"} == 2
""",
    hold_seconds=60,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: the BMC reports {{ $labels.name }} as critical",
    description=prose("""
        Sensor {{ $labels.name }} of {{ $labels.node }} is beyond its critical limit. A temperature: check cooling; a voltage: a power
        supply or the board. See its value: ipmitool sdr elist.
    """),
    means="The maker's own limit is exceeded. The BMC may power the node off to protect it.",
    steps=listed(f"""
        - {_SDR}
        - A temperature: fans (FanFailed) and inlet (InletTemperatureHigh) first.
        - A voltage: {steps.then(steps.DRAIN)} Then have the supplies swapped; if it stays, the board.
        - A sensor that is plainly wrong (-128, 255): firmware. Exclude it: `ipmi_exporter.exclude_sensors`.
        - {steps.SEL}
    """),
    jobs=_IPMI,
    source=_STATES,
)

_LOG_FULL = Alert(
    name="BmcEventLogFull",
    expr='ipmi_sel_free_space_bytes{job="ipmi"} < <bytes>',
    hold_seconds=600,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: the BMC's event log is full",
    description=prose("""
        The event log of the BMC of {{ $labels.node }} has {{ $value }} bytes left. Once it is full most BMCs record nothing more, and the
        next fault leaves no trace. Save it, then clear it.
    """),
    means="Events have piled up, often the same one thousands of times: a part that fails, or a sensor at its limit.",
    steps=listed("""
        - Save it: `ipmitool sel elist > NODE.sel`.
        - `cut -d'|' -f4- NODE.sel | sort | uniq -c | sort -n | tail`: does one event repeat? Repair that first.
        - Clear it: `ipmitool sel clear`.
    """),
    jobs=_IPMI,
    thresholds={
        "bytes": Threshold(
            512,
            "bytes",
            "Room in the event log.",
            "rackwright: 32 entries of 16 bytes (IPMI 2.0, 31.6; 2026-11-27)",
        )
    },
)

GROUP = RuleGroup("power", (_UNREACHABLE, _UNREADABLE, _OFF, _PSU, _FAN, _INLET, _SENSOR, _LOG_FULL))
