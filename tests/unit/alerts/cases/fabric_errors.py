"""Cases of rackwright.alerts.fabric_errors."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import NODE, node

CASES = (
    Case(
        alert="FabricLinkFlapping",
        series={
            node("node_infiniband_link_downed_total", device="mlx5_0", port="1"): "0*61 2*70",
            node("node_infiniband_link_error_recovery_total", device="mlx5_0", port="1"): "0*131",
        },
        fires=3660,
        labels={**NODE, "device": "mlx5_0", "port": "1"},
        severity="warning",
        summary="gpu1: mlx5_0/1 flaps, 2 times within an hour",
        description="The link of mlx5_0 port 1 on gpu1 went down or had to recover 2 times within an hour. Jobs that cross it fail or stall. Drain the node and replace the cable.",
        heals=7260,
        under=(
            {node("node_infiniband_link_downed_total", device="mlx5_0", port="1"): "0*61 1*70"},
            {node("node_infiniband_link_downed_total", device="mlx5_0", port="1"): "0*61 1.9*70"},
            {
                node("node_infiniband_link_downed_total", device="mlx5_0", port="1"): "0*131",
                node("node_infiniband_link_error_recovery_total", device="mlx5_0", port="1"): "0*61 9*70",
            },
        ),
    ),
    Case(
        alert="FabricLinkFlapping",
        series={node("node_infiniband_link_error_recovery_total", device="mlx5_0", port="1"): "0*61 11*70"},
        fires=3660,
        labels={**NODE, "device": "mlx5_0", "port": "1"},
        severity="warning",
        summary="gpu1: mlx5_0/1 flaps, 11 times within an hour",
        description="The link of mlx5_0 port 1 on gpu1 went down or had to recover 11 times within an hour. Jobs that cross it fail or stall. Drain the node and replace the cable.",
        heals=7260,
        under=({node("node_infiniband_link_error_recovery_total", device="mlx5_0", port="1"): "0*61 9*70"},),
    ),
    Case(
        alert="FabricSymbolErrors",
        series={node("node_infiniband_symbol_error_total", device="mlx5_0", port="1"): "0*61 121*70"},
        fires=3660,
        labels={**NODE, "device": "mlx5_0", "port": "1"},
        severity="warning",
        summary="gpu1: 121 symbol errors on mlx5_0/1 within an hour",
        description="mlx5_0 port 1 of gpu1 counted 121 symbol errors within an hour, above the bit error rate that InfiniBand allows. Packets are sent again and jobs slow down. Replace the cable.",
        heals=7260,
        under=({node("node_infiniband_symbol_error_total", device="mlx5_0", port="1"): "0*61 115*70"},),
    ),
    Case(
        alert="FabricReceiveErrors",
        series={node("node_infiniband_port_errors_received_total", device="mlx5_0", port="1"): "0*61 101*70"},
        fires=3660,
        labels={**NODE, "device": "mlx5_0", "port": "1"},
        severity="warning",
        summary="gpu1: 101 bad packets on mlx5_0/1 within an hour",
        description="mlx5_0 port 1 of gpu1 received 101 packets with errors within an hour. Look at this link first, then at the links behind the switch: damage travels on.",
        heals=7260,
        under=(
            {node("node_infiniband_port_errors_received_total", device="mlx5_0", port="1"): "0*61 95*70"},
        ),
    ),
    Case(
        alert="FabricTransmitDiscards",
        series={
            node("node_infiniband_port_discards_transmitted_total", device="mlx5_0", port="1"): "0*61 1001*70"
        },
        fires=3660,
        labels={**NODE, "device": "mlx5_0", "port": "1"},
        severity="warning",
        summary="gpu1: mlx5_0/1 discarded 1001 packets within an hour",
        description="mlx5_0 port 1 of gpu1 discarded 1001 packets within an hour: it could not send them in time. The fabric is congested, or the port went down under load.",
        heals=7260,
        under=(
            {
                node(
                    "node_infiniband_port_discards_transmitted_total", device="mlx5_0", port="1"
                ): "0*61 950*70"
            },
        ),
    ),
    Case(
        alert="RocePacketLoss",
        series={
            node(
                "node_infiniband_local_ack_timeout_errors_total", device="mlx5_0", port="1"
            ): "0+40*20 760*10",
            node("node_infiniband_packet_sequence_errors_total", device="mlx5_0", port="1"): "0+40*20 760*10",
        },
        fires=840,
        labels={**NODE, "device": "mlx5_0", "port": "1"},
        severity="warning",
        summary="gpu1: mlx5_0 loses 1.3 RoCE packets a second",
        description="mlx5_0 of gpu1 counts 1.3 timeouts and sequence errors a second: RoCE packets are dropped on a fabric that should be lossless. Check PFC and ECN on the path.",
        heals=1260,
        under=(
            {
                node(
                    "node_infiniband_local_ack_timeout_errors_total", device="mlx5_0", port="1"
                ): "0+29*20 551*10",
                node(
                    "node_infiniband_packet_sequence_errors_total", device="mlx5_0", port="1"
                ): "0+29*20 551*10",
            },
        ),
    ),
    Case(
        alert="RoceRetransmits",
        series={
            node("node_infiniband_roce_adp_retransmits_total", device="mlx5_0", port="1"): "0+660*20 12540*10"
        },
        fires=900,
        labels={**NODE, "device": "mlx5_0", "port": "1"},
        severity="warning",
        summary="gpu1: mlx5_0 retransmits 11.0 times a second",
        description="mlx5_0 of gpu1 sends 11.0 RoCE messages a second again. Packets are lost, or answers come late: look for RocePacketLoss and PfcPauses on the same path.",
        heals=1200,
        under=({node("node_infiniband_roce_adp_retransmits_total", device="mlx5_0", port="1"): "0+590*30"},),
    ),
)
