"""Links of the fabric that work badly: bit errors, flaps, drops, retransmits."""

from __future__ import annotations

from rackwright.alerts import sources, steps
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_NODE = frozenset({"node"})
_LINK_STEPS = f"""
    - `mlxlink -d DEVICE -m -c` on the node: effective and raw bit error rate, light levels, temperature of the module.
    - `ibqueryerrors` from a head with a port: do the counters grow at the switch's end too?
    - {steps.DRAIN}
    - Clean and reseat both ends, then replace the cable or module; then try another switch port; then replace the card.
    - Clear the counters (`perfquery -x -R`), run `rackwright burnin FILE`, and see that they stay at zero.
    - {steps.RESUME}
"""


def _port(metric: str) -> str:
    return f'node_infiniband_{metric}{{job="node"}}'


_FLAPPING = Alert(
    name="FabricLinkFlapping",
    expr=f"""
increase({_port("link_downed_total")}[1h]) >= <downs> or increase({_port("link_error_recovery_total")}[1h]) > <recoveries>
""",
    hold_seconds=0,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $labels.device }}/{{ $labels.port }} flaps, {{ $value | printf "%.0f" }} times within an hour',
    description=prose("""
        The link of {{ $labels.device }} port {{ $labels.port }} on {{ $labels.node }} went down or had to recover
        {{ $value | printf "%.0f" }} times within an hour. Jobs that cross it fail or stall. Drain the node and replace the cable.
    """),
    means="The link keeps retraining. A switch restart takes a link down once; repeated losses point to a bad cable or module.",
    steps=listed(_LINK_STEPS),
    jobs=_NODE,
    thresholds={
        "downs": Threshold(
            2,
            "times",
            "Times that the link went down within an hour.",
            "rackwright: a restarted switch takes it down once (2026-11-27)",
        ),
        "recoveries": Threshold(10, "times", "Recoveries of the link within an hour.", sources.IB_DIAGS),
    },
)

_SYMBOLS = Alert(
    name="FabricSymbolErrors",
    expr=f"increase({_port('symbol_error_total')}[1h]) > <errors>",
    hold_seconds=0,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $value | printf "%.0f" }} symbol errors on {{ $labels.device }}/{{ $labels.port }} within an hour',
    description=prose("""
        {{ $labels.device }} port {{ $labels.port }} of {{ $labels.node }} counted {{ $value | printf "%.0f" }} symbol errors within an
        hour, above the bit error rate that InfiniBand allows. Packets are sent again and jobs slow down. Replace the cable.
    """),
    means="Bits arrive damaged more often than the standard allows. The link still works, slower, and often fails for good later.",
    steps=listed(_LINK_STEPS),
    jobs=_NODE,
    thresholds={
        "errors": Threshold(
            120,
            "errors",
            "Symbol errors of a port within an hour.",
            f"{sources.SENTINEL}: a bit error rate of 1e-12",
        )
    },
)

_RECEIVE = Alert(
    name="FabricReceiveErrors",
    expr=f"increase({_port('port_errors_received_total')}[1h]) > <packets>",
    hold_seconds=0,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $value | printf "%.0f" }} bad packets on {{ $labels.device }}/{{ $labels.port }} within an hour',
    description=prose("""
        {{ $labels.device }} port {{ $labels.port }} of {{ $labels.node }} received {{ $value | printf "%.0f" }} packets with errors within
        an hour. Look at this link first, then at the links behind the switch: damage travels on.
    """),
    means="Packets arrive damaged. The damage comes from this link, or from one further back that a cut-through switch passed on.",
    steps=listed(_LINK_STEPS),
    jobs=_NODE,
    thresholds={"packets": Threshold(100, "packets", "Packets with errors within an hour.", sources.AI)},
)

_DISCARDS = Alert(
    name="FabricTransmitDiscards",
    expr=f"increase({_port('port_discards_transmitted_total')}[1h]) > <packets>",
    hold_seconds=0,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $labels.device }}/{{ $labels.port }} discarded {{ $value | printf "%.0f" }} packets within an hour',
    description=prose("""
        {{ $labels.device }} port {{ $labels.port }} of {{ $labels.node }} discarded {{ $value | printf "%.0f" }} packets within an hour:
        it could not send them in time. The fabric is congested, or the port went down under load.
    """),
    means="Packets waited too long for credits of the switch, or for a link that was down, and were thrown away.",
    steps=listed("""
        - FabricLinkFlapping or FabricPortDown for the same port? Then that is the cause.
        - Several nodes: congestion. `ibqueryerrors -r` names switch ports with discards and `PortXmitWait`; follow them to the
          port they end at. It is often one slow node: FabricPortsSlow, GpuPcieWidthLow.
        - Is adaptive routing on, and is the routing engine as declared (`rackwright verify FILE --role opensm`)?
    """),
    jobs=_NODE,
    thresholds={"packets": Threshold(1000, "packets", "Packets discarded within an hour.", sources.AI)},
)

_OFED = prose("""
    node_exporter reads these counters since 1.11 (release notes, read 2026-11-27): on distributions with an older one the rule
    has no data and never fires.
""")

_LOSS = Alert(
    name="RocePacketLoss",
    expr=f"""
rate({_port("local_ack_timeout_errors_total")}[5m]) + rate({_port("packet_sequence_errors_total")}[5m]) > <per_second>
""",
    hold_seconds=600,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $labels.device }} loses {{ $value | printf "%.1f" }} RoCE packets a second',
    description=prose("""
        {{ $labels.device }} of {{ $labels.node }} counts {{ $value | printf "%.1f" }} timeouts and sequence errors a second: RoCE packets
        are dropped on a fabric that should be lossless. Check PFC and ECN on the path.
    """),
    means=prose("""
        RoCE goes back and sends everything since the lost packet again, so that few losses cost much bandwidth. On a correctly
        configured lossless fabric there are none.
    """),
    steps=listed("""
        - One node: its link. `ethtool -S DEVICE | grep -e discard -e err`; see NetworkErrors and NetworkLinkFlapping.
        - Many nodes: `rackwright verify FILE --role roce` on them: PFC priority, trust and DSCP as declared?
        - On the switches: drops in the lossless queue mean that PFC is off, or buffers are too small, on that port.
        - Traffic in the wrong class: does the job set NCCL_IB_TC as declared? `rackwright verify FILE --role nccl`.
    """),
    jobs=_NODE,
    thresholds={
        "per_second": Threshold(
            1,
            "a second",
            "Timeouts and sequence errors.",
            "rackwright: a lossless fabric loses nothing (2026-11-27)",
        )
    },
    source=_OFED,
)

_RETRANSMITS = Alert(
    name="RoceRetransmits",
    expr=f"rate({_port('roce_adp_retransmits_total')}[5m]) > <per_second>",
    hold_seconds=600,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $labels.device }} retransmits {{ $value | printf "%.1f" }} times a second',
    description=prose("""
        {{ $labels.device }} of {{ $labels.node }} sends {{ $value | printf "%.1f" }} RoCE messages a second again. Packets are lost, or
        answers come late: look for RocePacketLoss and PfcPauses on the same path.
    """),
    means="The card sends again what was not acknowledged in time. Bandwidth falls, and jobs see latency spikes.",
    steps=listed("""
        - Together with RocePacketLoss: packets are dropped; follow that page.
        - Without it: answers are late. Look at the node at the other end of the job: PfcPauses, CpuThrottledByHeat,
          GpuPcieWidthLow.
        - `rdma statistic show link DEVICE/1` on the node shows all counters; compare with a healthy node.
    """),
    jobs=_NODE,
    thresholds={
        "per_second": Threshold(
            10, "a second", "Adaptive retransmissions.", "rackwright: seldom is harmless (2026-11-27)"
        )
    },
    source=_OFED,
)

GROUP = RuleGroup("fabric_errors", (_FLAPPING, _SYMBOLS, _RECEIVE, _DISCARDS, _LOSS, _RETRANSMITS))
