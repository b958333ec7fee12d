"""InfiniBand and RoCE ports: missing, down, slow."""

from __future__ import annotations

from rackwright.alerts import steps
from rackwright.alerts.promql import NODE_UP, or_zero
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_NODE = frozenset({"node"})
LEAF = "LeafDown"
"""A run that takes all nodes of a leaf down silences it."""
_STATE = 'node_infiniband_state_id{job="node"}'
_ACTIVE = f"count by (node) ({_STATE} == 4)"
PORT_DOWN = f"""
(({_STATE} != 4 or node_infiniband_physical_state_id{{job="node"}} != 5) and max_over_time({_STATE}[1d]) >= 4)
"""
"""Ports that are down and were up within a day: ports that nothing is plugged into never were."""
_RATE = 'node_infiniband_rate_bytes_per_second{job="node"}'
_FAST = f"""
count by (node) (
  ({_RATE} >= on (node) group_left () rackwright_declared_fabric_port_bytes_per_second * 0.99) and ({_STATE} == 4)
)
"""
_TOO_FEW = f"""
rackwright_declared_fabric_ports * 0 + on (node) group_left () {or_zero(_ACTIVE)} < rackwright_declared_fabric_ports
"""
_PORT_STEPS = f"""
    - On the node: `ibstat DEVICE` (state and rate), `mlxlink -d DEVICE -m` (why it is down, light levels, bit errors).
    - `rackwright fabric check FILE` names the switch port at the other end, and cables that are in the wrong place.
    - {steps.DRAIN}
    - Reseat the cable at both ends; then swap it with a neighbour's. The fault moves: replace the cable. It stays: move it to
      another switch port, then replace the card.
    - {steps.RESUME}
"""

_DOWN = Alert(
    name="FabricPortDown",
    expr=PORT_DOWN,
    hold_seconds=120,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: fabric port {{ $labels.device }}/{{ $labels.port }} is down",
    description=prose("""
        {{ $labels.device }} port {{ $labels.port }} of {{ $labels.node }} was up within the last day and is down. Jobs on the node
        fail or crawl. Drain it; ibstat {{ $labels.device }} and mlxlink -d {{ $labels.device }} show the reason.
    """),
    means=prose("""
        A fabric link is gone. NCCL jobs that use it end with an error or hang; new ones fail when they connect. If most nodes
        of a leaf are affected, LeafDown fires too, and the leaf is to blame.
    """),
    steps=listed(_PORT_STEPS),
    jobs=_NODE,
    source="Active is 4, link up is 5: Linux, Documentation/ABI/stable/sysfs-class-infiniband (read 2026-11-20)",
)

_MISSING = Alert(
    name="FabricPortsMissing",
    expr=f"{_TOO_FEW} unless on (node) {PORT_DOWN}",
    hold_seconds=300,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: only {{ $value }} fabric ports are active",
    description=prose("""
        {{ $labels.node }} has {{ $value }} active fabric ports, fewer than its SKU declares, and has lost none within the last day. A card is missing, its driver is not loaded, or a port was never cabled. Look at ibstat there.
    """),
    means="The node has not had its full fabric bandwidth since it booted, or since a day ago. It must not take jobs.",
    steps=listed(f"""
        - `ibstat -l` and `lspci -d 15b3:` on the node: is every card there? A card that lspci does not show: power off fully,
          reseat it.
        - Cards are there, `ibstat` shows none: `lsmod | grep mlx5_ib`, `systemctl status openibd`, `dmesg | grep mlx5 | tail`.
        - A port in `Initializing`: no subnet manager. See OpensmDown, or the switch that runs it.
        {_PORT_STEPS.strip()}
    """),
    jobs=_NODE,
)

_LEAF = Alert(
    name=LEAF,
    expr=f"""
count by (leaf) (count by (leaf, node) ({PORT_DOWN} and on (node) {NODE_UP}))
/ count by (leaf) (up{{job="node",leaf!=""}} == 1) * 100 >= <percent>
and count by (leaf) (count by (leaf, node) {PORT_DOWN}) >= 2
""",
    hold_seconds=60,
    severity=Severity.CRITICAL,
    summary='Leaf {{ $labels.leaf }}: {{ $value | printf "%.0f" }} % of its nodes have lost a fabric port',
    description=prose("""
        {{ $value | printf "%.0f" }} % of the nodes on leaf {{ $labels.leaf }} lost a fabric port. The switch has failed, lost power or
        restarted. Go to the switch, not to the nodes.
    """),
    means=prose("""
        Nodes of one leaf lost their links together. All jobs that span this leaf fail. In a rail-optimised unit, where the
        label is a range of leaves, one dead leaf takes one port of every node. After a day it ends, repaired or not, and
        FabricPortsMissing names the nodes.
    """),
    steps=listed("""
        - Is the switch reachable (`ping LEAF`)? If not: power and fans, by the BMC of the switch or at the rack.
        - It is: its log. For InfiniBand, `ibswitches | grep LEAF` and `iblinkinfo | grep LEAF` from a head with a port.
        - It restarted: links come back within minutes. Keep its log, then see which nodes Slurm drained.
        - It is dead: drain its nodes (`scontrol update NodeName=NODESET State=DRAIN Reason="leaf LEAF"`), replace it.
        - After the repair: `rackwright fabric check FILE`, `rackwright burnin FILE`, then resume the nodes.
    """),
    jobs=_NODE,
    thresholds={
        "percent": Threshold(
            50,
            "percent",
            "Nodes of the leaf that lost a port.",
            "rackwright: half of them share a cause (2026-11-27)",
        )
    },
)

_SLOW = Alert(
    name="FabricPortsSlow",
    expr=f"""
rackwright_declared_fabric_fast_ports * 0 + on (node) group_left () {or_zero(_FAST)}
< rackwright_declared_fabric_fast_ports
unless on (node) ({_TOO_FEW})
unless on (node) {PORT_DOWN}
""",
    hold_seconds=300,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: only {{ $value }} fabric ports run at the declared speed",
    description=prose("""
        Only {{ $value }} fabric ports of {{ $labels.node }} run at the declared speed; the others are slower or not there. A collective is as slow as
        its slowest port, so this node slows every job it is part of. Drain it and look at ibstat: Rate.
    """),
    means=prose("""
        The link came up at a lower speed or with fewer lanes than declared: a damaged cable, a module of the wrong kind, or a
        setting of the switch port. Or a fabric card is gone, while Ethernet ports with RDMA, which the metrics cannot distinguish, make up the number.
    """),
    steps=listed(f"""
        - Which port: `for p in /sys/class/infiniband/*/ports/*; do echo $p $(cat $p/rate); done` on the node.
        {_PORT_STEPS.strip()}
    """),
    jobs=_NODE,
)

GROUP = RuleGroup("fabric", (_DOWN, _MISSING, _LEAF, _SLOW))
