"""Ethernet: errors, flaps, bonds, and how long lossless queues stand still."""

from __future__ import annotations

from rackwright.alerts import sources, steps
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_NODE = frozenset({"node"})


def _error_share(direction: str) -> str:
    errors = f'node_network_{direction}_errs_total{{job="node"}}'
    return f"""
        (rate({errors}[5m]) / rate(node_network_{direction}_packets_total{{job="node"}}[5m]) * 100 > <percent>
        and increase({errors}[1h]) > <packets>)
    """


_ERRORS = Alert(
    name="NetworkErrors",
    expr=f"{_error_share('receive')} or {_error_share('transmit')}",
    hold_seconds=900,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $value | printf "%.1f" }} % of packets on {{ $labels.device }} are damaged',
    description=prose("""
        {{ $value | printf "%.1f" }} % of the packets on {{ $labels.device }} of {{ $labels.node }} are damaged. Cable, module or
        port is going bad: look at both ends, ethtool -S {{ $labels.device }}.
    """),
    means="Damaged packets are sent again. Throughput falls, and every parallel job waits for its slowest link.",
    steps=listed("""
        - `ethtool -S DEVICE | grep -i -e err -e crc -e drop` twice, a minute apart: which counter grows?
        - CRC or symbol errors: cable or module. `ethtool -m DEVICE` shows light levels; compare with a healthy port.
        - The switch's counters of the same port: does it receive damage too, or only send it?
        - Reseat, then replace the cable or module; then the port at the switch; then the card.
        - `rackwright fabric check FILE` names the port at the other end.
    """),
    jobs=_NODE,
    thresholds={
        "percent": Threshold(1, "percent", "Packets with errors.", f"{sources.STACKHPC}; {sources.MIXIN}"),
        "packets": Threshold(
            100,
            "packets",
            "Damaged packets within an hour that are needed as well.",
            "rackwright, health checks, nic_errors: a few are a large share of an idle link's packets (2026-11-23)",
        ),
    },
)

_FLAPPING = Alert(
    name="NetworkLinkFlapping",
    expr='increase(node_network_carrier_down_changes_total{job="node"}[1h]) > <times>',
    hold_seconds=0,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $labels.device }} lost its link {{ $value | printf "%.0f" }} times within an hour',
    description=prose("""
        {{ $labels.device }} of {{ $labels.node }} lost its link {{ $value | printf "%.0f" }} times within an hour. Each loss stalls
        what uses it for seconds; NCCL gives up after a few. Reseat or replace its cable.
    """),
    means=prose("""
        A link that comes and goes is worse than one that is down: nothing fails over, and jobs die at random. The node's own
        health check judges the day: more than 5 losses in 24 hours take it out of service.
    """),
    steps=listed(f"""
        - `journalctl -k -g 'DEVICE.*link' -n 40` on the node: at which times, and with which reason?
        - `ethtool DEVICE | grep -e Speed -e 'Link detected'`; `ethtool -m DEVICE` for temperature and light of the module.
        - Other ports of the same switch or line card too: it is the switch. Read its log.
        - {steps.DRAIN}
        - Reseat both ends, then replace the cable or module.
        - {steps.RESUME}
    """),
    jobs=_NODE,
    thresholds={
        "times": Threshold(
            3,
            "times",
            "Losses of link within an hour.",
            f"rackwright: faster than the 5 a day at which a node fails in {sources.AZURE}",
        )
    },
)

_BOND = Alert(
    name="BondDegraded",
    expr='node_bonding_active{job="node"} < node_bonding_slaves{job="node"}',
    hold_seconds=300,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: {{ $labels.master }} has lost a link",
    description=prose("""
        Only {{ $value }} of the links of {{ $labels.master }} on {{ $labels.node }} work. The bond goes on with less bandwidth and without
        redundancy. See which: cat /proc/net/bonding/{{ $labels.master }}.
    """),
    means="The next lost link takes the node off that network.",
    steps=listed("""
        - `cat /proc/net/bonding/BOND` on the node: the member with `MII Status: down`.
        - `ethtool MEMBER`: `Link detected: no` is cable, module or switch port. `yes`: LACP; compare the partner's MAC address.
        - Many nodes: one of the two switches, or its MLAG, is at fault.
    """),
    jobs=_NODE,
)


def _paused(priority: int) -> str:
    duration = f'node_ethtool_received_prio{priority}_pause_duration{{job="node"}}'
    return f'label_replace(rate({duration}[5m]) / 1e4 > <percent>, "priority", "{priority}", "", "")'


_PAUSED = Alert(
    name="PfcPauses",
    expr=" or ".join(_paused(priority) for priority in range(8)),
    hold_seconds=900,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $labels.device }} is paused {{ $value | printf "%.0f" }} % of the time',
    description=prose("""
        The switch holds back priority {{ $labels.priority }} of {{ $labels.device }} on {{ $labels.node }} for
        {{ $value | printf "%.0f" }} % of the time. RoCE traffic is congested, or a slow receiver blocks the fabric. Find the port
        that the pauses start from.
    """),
    means=prose("""
        Priority flow control stops a sender rather than drop its packets. Pauses spread back from the port that cannot keep
        up, so that one slow node or one wrongly configured switch slows jobs that have nothing to do with it.
    """),
    steps=listed("""
        - How many nodes? One leaf's nodes: something behind that leaf. All: congestion control (ECN/DCQCN) is off or wrong.
        - A node that sends pauses (`ethtool -S DEVICE | grep tx_prio.*pause`) cannot take what it gets: look for
          GpuPcieWidthLow, GpuPcieGenerationLow and IOMMU or ACS settings there.
        - `rackwright verify FILE --role roce --limit NODE`: trust, PFC priority, DSCP and ECN as declared?
        - On the switches: ECN thresholds, and whether the PFC watchdog has fired.
        - A slow node is found: drain it, and see whether the pauses end.
    """),
    jobs=_NODE,
    thresholds={
        "percent": Threshold(
            5,
            "percent",
            "Time that a priority is paused.",
            "rackwright: a twentieth of the bandwidth is lost (2026-11-27)",
        )
    },
    source="mlx5's counters rx_prioN_pause_duration, microseconds: Linux, networking/device_drivers/ethernet/mellanox/mlx5/"
    "counters.rst (unconfirmed: from memory, 2026-11-27)",
)

GROUP = RuleGroup("network", (_ERRORS, _FLAPPING, _BOND, _PAUSED))
