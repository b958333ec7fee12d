"""Racks and leaves: where in the room something is different."""

from __future__ import annotations

from rackwright.dashboards.model import Colour, Dashboard, Panel, Row, Thresholds, Unit
from rackwright.dashboards.parts import LEAF, RACK, racks

_STATE = {
    0.0: ("up, no job", Colour.GOOD),
    1.0: ("has jobs", Colour.BUSY),
    2.0: ("drained", Colour.WARN),
    3.0: ("down in Slurm", Colour.BAD),
    4.0: ("does not answer", Colour.GONE),
}
_STATE_OF_NODES = """max by (node) (
  4 * (1 - up{job="node"})
  or slurm_node_state{state=~"allocated|mixed"}
  or 2 * slurm_node_state{state=~"drained|draining|maint"}
  or 3 * slurm_node_state{state=~"down|fail"}
)"""
_ALERTS = 'sum by (node) (ALERTS{alertstate="firing",severity=~"critical|warning"}) or sum by (node) (0 * up{job="node"})'
_CPU = 'avg by (node) (1 - rate(node_cpu_seconds_total{mode="idle"}[$__rate_interval]))'
_MEMORY = "max by (node) (1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)"


def _both(by: str, more: tuple[Panel, ...]) -> tuple[Panel, ...]:
    return (
        racks(
            f"State by {by}",
            Unit.STATE,
            f"Each node in its {by}. One colour for a whole {by} is its switch, power or cooling, not its nodes.",
            _STATE_OF_NODES,
            states=_STATE,
            by=by,
        ),
        racks(
            f"Alerts by {by}",
            Unit.NUMBER,
            "Critical alerts and warnings that name the node.",
            _ALERTS,
            low=0,
            high=5,
            thresholds=Thresholds(((1, Colour.WARN), (3, Colour.BAD))),
            by=by,
        ),
        *more,
    )


_BY_RACK = Row(
    "By rack",
    _both(
        "rack",
        (
            racks(
                "CPU busy by rack",
                Unit.RATIO,
                "Share of the CPUs' time. Nodes of one job are alike; one that is not is slower or does nothing.",
                _CPU,
                low=0,
                high=1,
            ),
            racks(
                "Memory in use by rack",
                Unit.RATIO,
                "Memory that programs hold. A full node among others of the same job has a process too many.",
                _MEMORY,
                low=0,
                high=1,
            ),
            racks(
                "GPU utilization by rack",
                Unit.PERCENT,
                "Mean of the node's GPUs. A cold node within a warm block is the one that its job waits for.",
                "avg by (node) (DCGM_FI_DEV_GPU_UTIL)",
                low=0,
                high=100,
            ),
            racks(
                "Hottest GPU by rack",
                Unit.CELSIUS,
                "The hottest GPU of each node. One hot node: its fans or heat sinks. A hot rack, or hot at the top: the room's "
                "air or the rack's water.",
                "max by (node) (DCGM_FI_DEV_GPU_TEMP)",
                low=25,
                high=90,
            ),
            racks(
                "GPU power by rack",
                Unit.WATTS,
                "All GPUs of each node. Far less than the other nodes of the same job at the same utilization: throttled, or "
                "stalled.",
                "sum by (node) (DCGM_FI_DEV_POWER_USAGE)",
            ),
            racks(
                "Inlet temperature by rack",
                Unit.CELSIUS,
                "The air that enters the node, from its BMC. Warmer at the top of a rack: hot air comes back over it.",
                'max by (node) (ipmi_temperature_celsius{name=~"(?i).*(inlet|ambient).*"})',
                low=15,
                high=35,
            ),
        ),
    ),
)
_BY_LEAF = Row(
    "By leaf",
    _both(
        "leaf",
        (
            racks(
                "Fabric received by leaf",
                Unit.BYTES_PER_SECOND,
                "What each node receives on all its ports. One node of a job that receives less than the others slows all.",
                "sum by (node) (rate(node_infiniband_port_data_received_bytes_total[$__rate_interval]))",
                by="leaf",
            ),
            racks(
                "Link errors by leaf",
                Unit.PER_SECOND,
                "Symbol errors and recoveries of all ports. One node: its cable or transceiver; a whole leaf: the switch.",
                "sum by (node) (rate(node_infiniband_symbol_error_total[$__rate_interval]))"
                " + sum by (node) (rate(node_infiniband_link_error_recovery_total[$__rate_interval]))",
                by="leaf",
                low=0,
            ),
        ),
    ),
)
RACKS = Dashboard(
    "racks",
    "Racks and leaves",
    "Where in the room something is different: the same figures of every node, by rack and position, and by leaf switch.",
    (_BY_RACK, _BY_LEAF),
    (RACK, LEAF),
)
