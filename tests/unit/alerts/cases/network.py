"""Cases of rackwright.alerts.network."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import NODE, node

CASES = (
    Case(
        alert="NetworkErrors",
        series={
            node("node_network_receive_errs_total", device="eth0"): "0+4*50 196*10",
            node("node_network_receive_packets_total", device="eth0"): "0+300*60",
        },
        fires=2460,
        labels={**NODE, "device": "eth0"},
        severity="warning",
        summary="gpu1: 1.3 % of packets on eth0 are damaged",
        description="1.3 % of the packets on eth0 of gpu1 are damaged. Cable, module or port is going bad: look at both ends, ethtool -S eth0.",
        heals=3060,
        under=(
            {
                node("node_network_receive_errs_total", device="eth0"): "0+2.9*50 142.1*10",
                node("node_network_receive_packets_total", device="eth0"): "0+300*60",
            },
            {
                node("node_network_receive_errs_total", device="eth0"): "0+1.6*130",
                node("node_network_receive_packets_total", device="eth0"): "0+120*130",
            },
        ),
    ),
    Case(
        alert="NetworkLinkFlapping",
        series={node("node_network_carrier_down_changes_total", device="eth0"): "0*61 4*70"},
        fires=3660,
        labels={**NODE, "device": "eth0"},
        severity="warning",
        summary="gpu1: eth0 lost its link 4 times within an hour",
        description="eth0 of gpu1 lost its link 4 times within an hour. Each loss stalls what uses it for seconds; NCCL gives up after a few. Reseat or replace its cable.",
        heals=7260,
        under=({node("node_network_carrier_down_changes_total", device="eth0"): "0*61 2.9*70"},),
    ),
    Case(
        alert="BondDegraded",
        series={
            node("node_bonding_slaves", master="bond0"): "2*13",
            node("node_bonding_active", master="bond0"): "2*2 1*8 2*3",
        },
        fires=420,
        labels={**NODE, "master": "bond0"},
        severity="warning",
        summary="gpu1: bond0 has lost a link",
        description="Only 1 of the links of bond0 on gpu1 work. The bond goes on with less bandwidth and without redundancy. See which: cat /proc/net/bonding/bond0.",
        heals=600,
        under=({node("node_bonding_active", master="bond0"): "2*13"},),
    ),
    Case(
        alert="PfcPauses",
        series={
            node("node_ethtool_received_prio3_pause_duration", device="eth2"): "0+3300000*30 95700000*10"
        },
        fires=1200,
        labels={**NODE, "device": "eth2", "priority": "3"},
        severity="warning",
        summary="gpu1: eth2 is paused 6 % of the time",
        description="The switch holds back priority 3 of eth2 on gpu1 for 6 % of the time. RoCE traffic is congested, or a slow receiver blocks the fabric. Find the port that the pauses start from.",
        heals=1800,
        under=({node("node_ethtool_received_prio3_pause_duration", device="eth2"): "0+2900000*40"},),
    ),
)
