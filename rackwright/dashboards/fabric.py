"""The fabric between the nodes."""

from __future__ import annotations

from rackwright.dashboards.model import Colour, Dashboard, Row, Thresholds, Unit
from rackwright.dashboards.parts import ANY_IS_BAD, LEAF, counted, heat, stat, table, time

_AT = '{leaf=~"$leaf"}'
_ERRORS = Thresholds(((0.01, Colour.WARN),))


def _sum(by: str, metric: str) -> str:
    return f"sum by ({by}) (rate(node_infiniband_{metric}{_AT}[$__rate_interval]))"


_NOW = Row(
    "Now",
    (
        stat(
            "Ports that are active",
            Unit.NUMBER,
            "Ports in the state `active`, and those that the cluster file declares.",
            (f"count(node_infiniband_state_id{_AT} == 4)", "active"),
            (f"sum(rackwright_declared_fabric_ports{_AT})", "declared"),
        ),
        stat(
            "Ports that are not",
            Unit.NUMBER,
            "Ports that a node has and that are not active: a cable, a transceiver, or a subnet manager that is gone.",
            (counted(f"node_infiniband_state_id{_AT} != 4", f"node_infiniband_state_id{_AT}"), "ports"),
            thresholds=ANY_IS_BAD,
        ),
        stat(
            "Slow ports",
            Unit.NUMBER,
            "Active ports below the declared rate: trained down by a bad cable, or in the wrong switch port.",
            (
                counted(
                    f"node_infiniband_rate_bytes_per_second{_AT} < on (node) group_left () "
                    "rackwright_declared_fabric_port_bytes_per_second",
                    f"node_infiniband_rate_bytes_per_second{_AT}",
                ),
                "ports",
            ),
            thresholds=ANY_IS_BAD,
        ),
        stat(
            "Throughput",
            Unit.BYTES_PER_SECOND,
            "All ports together, received. Near zero while jobs run: they use another network.",
            (f"sum(rate(node_infiniband_port_data_received_bytes_total{_AT}[$__rate_interval]))", "received"),
        ),
        stat(
            "Links lost, 1 h",
            Unit.NUMBER,
            "How often a link went down in the last hour. Above zero on one port: its cable; on many at once: a switch.",
            (f"sum(increase(node_infiniband_link_downed_total{_AT}[1h]))", "times"),
            thresholds=ANY_IS_BAD,
        ),
        stat(
            "Symbol errors, 1 h",
            Unit.NUMBER,
            "Bits that were received wrong in the last hour, on all ports. Zero on good cables.",
            (f"sum(increase(node_infiniband_symbol_error_total{_AT}[1h]))", "errors"),
            thresholds=Thresholds(((1, Colour.NOTICE), (100, Colour.BAD))),
        ),
    ),
)
_FLOW = Row(
    "Throughput",
    (
        time(
            "Received by rail",
            Unit.BYTES_PER_SECOND,
            "All nodes together, by port name. Rails that are used alike lie together; one flat rail is a bad leaf or rail.",
            (_sum("device", "port_data_received_bytes_total"), "{{device}}"),
            low=0,
        ),
        time(
            "Sent by rail",
            Unit.BYTES_PER_SECOND,
            "As received; a rail that receives and does not send has a cable that works one way.",
            (_sum("device", "port_data_transmitted_bytes_total"), "{{device}}"),
            low=0,
        ),
        time(
            "Received by leaf",
            Unit.BYTES_PER_SECOND,
            "Nodes behind each leaf. One leaf below the others in a job across all of them: its uplinks.",
            (_sum("leaf", "port_data_received_bytes_total"), "{{leaf}}"),
            low=0,
        ),
        heat(
            "Received by each port",
            Unit.BYTES_PER_SECOND,
            "A row for each port. A dark row in a bright block is the bad link of a job.",
            (
                f"rate(node_infiniband_port_data_received_bytes_total{_AT}[$__rate_interval])",
                "{{node}} {{device}}",
            ),
            low=0,
        ),
    ),
)
_WAITING = Row(
    "Congestion",
    (
        time(
            "Waiting to send",
            Unit.PER_SECOND,
            "PortXmitWait, ticks in which a port had data and no credits. High on all ports of a leaf: congestion above it; on "
            "one port: a slow receiver.",
            (f"topk(20, {_sum('node, device', 'port_transmit_wait_total')})", "{{node}} {{device}}"),
            low=0,
            leads_to=("node",),
        ),
        time(
            "Congestion notices (RoCE)",
            Unit.PER_SECOND,
            "Packets marked by switches, and notices that were sent and handled. A steady rate is congestion control at work; "
            "marks without notices: it is not configured on the nodes.",
            (_sum("leaf", "np_ecn_marked_roce_packets_received_total"), "{{leaf}} marked"),
            (_sum("leaf", "np_cnp_packets_sent_total"), "{{leaf}} notices sent"),
            (_sum("leaf", "rp_cnp_packets_handled_total"), "{{leaf}} notices handled"),
            low=0,
        ),
        time(
            "Paused by switches (RoCE)",
            Unit.RATIO,
            "Share of time in which priority flow control, of priority 3, held a node's ports. Some of it is usual under load; "
            "near 1 for long on one node is a storm that reaches others.",
            (
                f"max by (node) (rate(node_ethtool_received_prio3_pause_duration{_AT}[$__rate_interval])) / 1e6",
                "{{node}}",
            ),
            low=0,
            leads_to=("node",),
        ),
        time(
            "Retransmissions (RoCE)",
            Unit.PER_SECOND,
            "Packets out of sequence and acknowledgements that did not come. Above zero for long: packets are dropped; look at "
            "priority flow control on that leaf.",
            (_sum("node", "out_of_sequence_packets_received_total"), "{{node}} out of sequence"),
            (_sum("node", "local_ack_timeout_errors_total"), "{{node}} no acknowledgement"),
            (_sum("node", "packet_sequence_errors_total"), "{{node}} sequence errors"),
            low=0,
            leads_to=("node",),
        ),
        time(
            "Packets discarded",
            Unit.PER_SECOND,
            "Packets that ports did not send because the port was down or the packet too old.",
            (_sum("node, device", "port_discards_transmitted_total"), "{{node}} {{device}}"),
            low=0,
            leads_to=("node",),
        ),
    ),
)
_ERRORS_ROW = Row(
    "Errors",
    (
        time(
            "Symbol errors",
            Unit.PER_SECOND,
            "By port. A port with a steady rate has a dirty or bad cable, long before the link goes down.",
            (_sum("node, device", "symbol_error_total"), "{{node}} {{device}}"),
            thresholds=_ERRORS,
            low=0,
            leads_to=("node",),
        ),
        time(
            "Received with errors",
            Unit.PER_SECOND,
            "Packets that arrived damaged, by port.",
            (_sum("node, device", "port_errors_received_total"), "{{node}} {{device}}"),
            thresholds=_ERRORS,
            low=0,
            leads_to=("node",),
        ),
        time(
            "Links that recovered",
            Unit.PER_SECOND,
            "Times that a link had to train again. The job's collectives stall each time.",
            (_sum("node, device", "link_error_recovery_total"), "{{node}} {{device}}"),
            thresholds=_ERRORS,
            low=0,
            leads_to=("node",),
        ),
        table(
            "Ports that are not active",
            "State as the kernel numbers it: 1 down, 2 initializing (no subnet manager), 3 armed.",
            ("node", "device", "port", "leaf"),
            (f"node_infiniband_state_id{_AT} != 4", "state", Unit.NUMBER),
            empty="Every port is active.",
        ),
    ),
)
FABRIC = Dashboard(
    "fabric",
    "Fabric",
    "InfiniBand and RoCE: which link is down, slow, congested or bad, and whether all rails carry the same.",
    (_NOW, _FLOW, _WAITING, _ERRORS_ROW),
    (LEAF,),
)
