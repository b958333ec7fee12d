"""Cases of rackwright.alerts.power."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import BMC, GPU1, ipmi, node

CASES = (
    Case(
        alert="BmcUnreachable",
        series={
            ipmi("ipmi_up", collector="bmc"): "1*2 0*14 1*3",
            ipmi("ipmi_up", collector="ipmi"): "1*2 0*14 1*3",
        },
        fires=720,
        labels=GPU1,
        severity="warning",
        summary="The BMC of gpu1 does not answer",
        description="The BMC of gpu1 has not answered for 10 minutes. If the node hangs now, no one can see its console or power-cycle it from afar. Reset the BMC from the node: ipmitool mc reset cold.",
        heals=960,
        under=({ipmi("ipmi_up", collector="bmc"): "1*19"},),
    ),
    Case(
        alert="BmcUnreachable",
        series={ipmi("up"): "1*2 0*14 1*3"},
        fires=720,
        labels=GPU1,
        severity="warning",
        summary="The BMC of gpu1 does not answer",
        description="The BMC of gpu1 has not answered for 10 minutes. If the node hangs now, no one can see its console or power-cycle it from afar. Reset the BMC from the node: ipmitool mc reset cold.",
        heals=960,
        under=({ipmi("up"): "1*2 0*10 1*7"},),
    ),
    Case(
        alert="NodePoweredOff",
        series={ipmi("ipmi_chassis_power_state"): "1*2 0*8 1*3", node("up"): "1*2 0*8 1*3"},
        fires=420,
        labels=GPU1,
        severity="warning",
        summary="gpu1 is powered off",
        description="The BMC of gpu1 answers and says that the node is off. Read its event log for the reason, then power it on: ipmitool -I lanplus -H BMC -U USER -a chassis power on.",
        heals=600,
        under=(
            {ipmi("ipmi_chassis_power_state"): "1*13"},
            {node("up"): "1*13"},
        ),
    ),
    Case(
        alert="PsuFailed",
        series={ipmi("ipmi_sensor_state", id="7", name="PS1 Status", type="Power Supply"): "0*2 2*4 0*2"},
        fires=180,
        labels={**BMC, "id": "7", "name": "PS1 Status", "type": "Power Supply"},
        severity="warning",
        summary="gpu1: power supply PS1 Status has failed",
        description="The BMC of gpu1 reports PS1 Status as failed or without input. The node runs on the others; under full load they may not be enough. Check its cord and feed, then replace it.",
        heals=360,
        under=({ipmi("ipmi_sensor_state", id="7", name="PS1 Status", type="Power Supply"): "0*2 1*6"},),
    ),
    Case(
        alert="FanFailed",
        series={ipmi("ipmi_fan_speed_state", id="3", name="FAN1"): "0*2 2*4 0*2"},
        fires=180,
        labels={**BMC, "id": "3", "name": "FAN1"},
        severity="warning",
        summary="gpu1: fan FAN1 has failed",
        description="The BMC of gpu1 reports fan FAN1 beyond its critical limit. The others run faster, and GPUs behind it get hot. Have it replaced, and watch GpuHot.",
        heals=360,
        under=({ipmi("ipmi_fan_speed_state", id="3", name="FAN1"): "0*2 1*6"},),
    ),
    Case(
        alert="InletTemperatureHigh",
        series={ipmi("ipmi_temperature_celsius", id="1", name="Inlet Temp"): "24*2 33*8 24*3"},
        fires=420,
        labels={**BMC, "id": "1", "name": "Inlet Temp"},
        severity="critical",
        summary="gpu1: inlet air is at 33 °C",
        description="The inlet of gpu1 in rack r1 reads 33 °C. GPUs throttle, and nodes shut off next. If it is more than one node, call facilities now.",
        heals=600,
        under=(
            {
                ipmi("ipmi_temperature_celsius", id="1", name="Inlet Temp"): "24*2 32*11",
                ipmi("ipmi_temperature_celsius", id="2", name="CPU1 Temp"): "60*13",
            },
        ),
    ),
    Case(
        alert="BmcSensorCritical",
        series={ipmi("ipmi_temperature_state", id="2", name="CPU1 Temp"): "0*2 2*4 0*2"},
        fires=180,
        labels={**BMC, "id": "2", "name": "CPU1 Temp"},
        severity="warning",
        summary="gpu1: the BMC reports CPU1 Temp as critical",
        description="Sensor CPU1 Temp of gpu1 is beyond its critical limit. A temperature: check cooling; a voltage: a power supply or the board. See its value: ipmitool sdr elist.",
        heals=360,
        under=({ipmi("ipmi_temperature_state", id="2", name="CPU1 Temp"): "0*2 1*6"},),
    ),
    Case(
        alert="BmcSensorCritical",
        series={ipmi("ipmi_voltage_state", id="5", name="12V"): "0*2 2*4 0*2"},
        fires=180,
        labels={**BMC, "id": "5", "name": "12V"},
        severity="warning",
        summary="gpu1: the BMC reports 12V as critical",
        description="Sensor 12V of gpu1 is beyond its critical limit. A temperature: check cooling; a voltage: a power supply or the board. See its value: ipmitool sdr elist.",
        heals=360,
        under=(
            {
                ipmi("ipmi_voltage_state", id="5", name="12V"): "0*2 1*6",
                ipmi("ipmi_power_state", id="6", name="Pwr Consumption"): "1*8",
            },
        ),
    ),
    Case(
        alert="BmcEventLogFull",
        series={ipmi("ipmi_sel_free_space_bytes"): "15968*2 496*13 15968*2"},
        fires=720,
        labels=BMC,
        severity="warning",
        summary="gpu1: the BMC's event log is full",
        description="The event log of the BMC of gpu1 has 496 bytes left. Once it is full most BMCs record nothing more, and the next fault leaves no trace. Save it, then clear it.",
        heals=900,
        under=({ipmi("ipmi_sel_free_space_bytes"): "15968*2 512*15"},),
    ),
)
