"""Cases of rackwright.alerts.devices."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import SWITCH, prometheus, snmp

CASES = (
    Case(
        alert="SnmpDeviceDown",
        series={snmp("up"): "1*2 0*8 1*3"},
        fires=420,
        labels=SWITCH,
        severity="warning",
        summary="switch leaf1 does not answer",
        description="switch leaf1 (10.1.0.201) has not answered SNMP for 5 minutes. Ping it; if nodes behind it are down too, go to the device.",
        heals=600,
        under=(
            {snmp("up"): "1*2 0*5 1*6"},
            {prometheus("up", job="snmp", instance="head1:9116"): "0*13"},
        ),
    ),
    Case(
        alert="SwitchPortDown",
        series={
            snmp("ifOperStatus", ifAlias="gpu1 eth0", ifIndex="12", ifName="swp12"): "1*3 2*18 1*3",
            snmp("ifAdminStatus", ifAlias="gpu1 eth0", ifIndex="12", ifName="swp12"): "1*24",
        },
        fires=1080,
        labels={**SWITCH, "ifAlias": "gpu1 eth0", "ifIndex": "12", "ifName": "swp12"},
        severity="warning",
        summary="Switch leaf1: port swp12 is down",
        description="Port swp12 (gpu1 eth0) of leaf1 was up within the last day and is down. A node behind it has its own alert; for an uplink, capacity is lost. See what is at the other end.",
        heals=1260,
        under=(
            {snmp("ifAdminStatus", ifAlias="gpu1 eth0", ifIndex="12", ifName="swp12"): "2*24"},
            {snmp("ifOperStatus", ifAlias="gpu1 eth0", ifIndex="12", ifName="swp12"): "2*24"},
        ),
    ),
    Case(
        alert="SwitchPortErrors",
        series={snmp("ifInErrors", ifAlias="gpu1 eth0", ifIndex="12", ifName="swp12"): "0*61 105*70"},
        fires=3660,
        labels={**SWITCH, "ifAlias": "gpu1 eth0", "ifIndex": "12", "ifName": "swp12"},
        severity="warning",
        summary="Switch leaf1: 105 damaged packets on swp12 within an hour",
        description="Port swp12 (gpu1 eth0) of leaf1 received 105 damaged packets within an hour. The cable, or the module at the other end, is going bad.",
        heals=7260,
        under=({snmp("ifInErrors", ifAlias="gpu1 eth0", ifIndex="12", ifName="swp12"): "0*61 95*70"},),
    ),
    Case(
        alert="UpsOnBattery",
        series={
            snmp("upsOutputSource", device="ups1", kind="ups"): "3*2 5*4 3*2",
            snmp("upsEstimatedMinutesRemaining", device="ups1", kind="ups"): "18*8",
        },
        fires=180,
        labels={"device": "ups1", "instance": "10.1.0.211", "job": "snmp", "kind": "ups", "rack": "r1"},
        severity="critical",
        summary="UPS ups1 runs on its battery, 18 min left",
        description="The mains of UPS ups1 have failed; its battery lasts another 18 min at this load. Call facilities, and be ready to shut down what it feeds.",
        heals=360,
        under=({snmp("upsOutputSource", device="ups1", kind="ups"): "4*8"},),
    ),
    Case(
        alert="UpsBatteryLow",
        series={snmp("upsBatteryStatus", device="ups1", kind="ups"): "2*2 3*3 2*2"},
        fires=120,
        labels={"device": "ups1", "instance": "10.1.0.211", "job": "snmp", "kind": "ups", "rack": "r1"},
        severity="critical",
        summary="UPS ups1: the battery is low",
        description="The battery of UPS ups1 is low or depleted. On battery, what it feeds goes off within minutes: shut it down now. On mains, the battery is worn out and has to be replaced.",
        heals=300,
        under=({snmp("upsBatteryStatus", device="ups1", kind="ups"): "2*7"},),
    ),
    Case(
        alert="UpsOverloaded",
        series={
            snmp("upsOutputPercentLoad", upsOutputLineIndex="1", device="ups1", kind="ups"): "52*2 81*13 52*2"
        },
        fires=720,
        labels={
            "device": "ups1",
            "instance": "10.1.0.211",
            "job": "snmp",
            "kind": "ups",
            "rack": "r1",
            "upsOutputLineIndex": "1",
        },
        severity="warning",
        summary="UPS ups1 is at 81 % of its load",
        description="Line 1 of UPS ups1 has been above 80 % of its load for 10 minutes, now 81 %. One more node may switch it to bypass, and the battery lasts minutes less. Move load to another feed.",
        heals=900,
        under=(
            {snmp("upsOutputPercentLoad", upsOutputLineIndex="1", device="ups1", kind="ups"): "52*2 80*15"},
        ),
    ),
    Case(
        alert="PduOverloaded",
        series={
            snmp(
                "rPDU2PhaseStatusLoadState", rPDU2PhaseStatusIndex="1", device="pdu1", kind="pdu"
            ): "2*2 3*4 2*2"
        },
        fires=180,
        labels={
            "device": "pdu1",
            "instance": "10.1.0.211",
            "job": "snmp",
            "kind": "pdu",
            "rPDU2PhaseStatusIndex": "1",
            "rack": "r1",
        },
        severity="critical",
        summary="PDU pdu1 is near or above its limit",
        description="PDU pdu1 in rack r1 reports a load near or above its limit. Its breaker trips next, and the rack is down. Take load off: drain nodes, or cap their power.",
        heals=360,
        under=(
            {
                snmp(
                    "rPDU2PhaseStatusLoadState", rPDU2PhaseStatusIndex="1", device="pdu1", kind="pdu"
                ): "2*8",
                snmp(
                    "rPDU2DeviceStatusLoadState", rPDU2DeviceStatusIndex="1", device="pdu1", kind="pdu"
                ): "5*8",
            },
        ),
    ),
    Case(
        alert="PduOverloaded",
        series={
            snmp(
                "measurementsInletSensorState",
                inletId="1",
                pduId="1",
                sensorType="activePower",
                device="pdu1",
                kind="pdu",
            ): "4*2 5*4 4*2"
        },
        fires=180,
        labels={
            "device": "pdu1",
            "inletId": "1",
            "instance": "10.1.0.211",
            "job": "snmp",
            "kind": "pdu",
            "pduId": "1",
            "rack": "r1",
            "sensorType": "activePower",
        },
        severity="critical",
        summary="PDU pdu1 is near or above its limit",
        description="PDU pdu1 in rack r1 reports a load near or above its limit. Its breaker trips next, and the rack is down. Take load off: drain nodes, or cap their power.",
        heals=360,
        under=(
            {
                snmp(
                    "measurementsInletSensorState",
                    inletId="1",
                    pduId="1",
                    sensorType="activePower",
                    device="pdu1",
                    kind="pdu",
                ): "4*2 7*3 3*3"
            },
        ),
    ),
)
