"""Checks that the data of a run went over RDMA, from the port counters before and after it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rackwright.burnin.counters import NodeState
from rackwright.burnin.finding import Finding
from rackwright.burnin.rails import Rail
from rackwright.model.ranges import fold
from rackwright.status import Status

NAMED_MAX = 8


def judge_counters(
    before: Mapping[str, NodeState],
    after: Mapping[str, NodeState],
    rails: Mapping[str, Sequence[Rail]],
    least_bytes: int,
) -> list[Finding]:
    """FAIL if a node sent less than `least_bytes` over its declared devices, UNKNOWN if that is not counted.

    `least_bytes` is one message: a node sends each of the largest messages at least once, in every algorithm.
    """
    unread: dict[str, str] = {}
    by_tcp: list[str] = []
    for node, mine in rails.items():
        if not mine:
            continue
        sent, why = sent_by_rdma(before.get(node), after.get(node), mine)
        if sent is None:
            unread[node] = why
        elif sent < least_bytes:
            by_tcp.append(
                f"{node} sent {sent} B over {', '.join(rail.device for rail in mine)}{_instead(before, after, node)}"
            )
    findings = []
    if by_tcp:
        kind = next(rail.kind for mine in rails.values() for rail in mine)
        more = f" and {len(by_tcp) - NAMED_MAX} more" if len(by_tcp) > NAMED_MAX else ""
        why = f"transport: {kind} is declared, but RDMA was not used; one message is {least_bytes} B: "
        findings.append(Finding(Status.FAIL, why + "; ".join(by_tcp[:NAMED_MAX]) + more))
    if unread:
        shown = next(iter(unread.values()))
        findings.append(
            Finding(Status.UNKNOWN, f"transport: the RDMA counters of {fold(unread)} cannot be read: {shown}")
        )
    return findings


def sent_by_rdma(
    before: NodeState | None, after: NodeState | None, rails: Sequence[Rail]
) -> tuple[int | None, str]:
    """Bytes that a node sent over its declared devices; None with the reason if they are not counted."""
    if before is None or after is None:
        return None, "they were not read"
    if before.problem is not None or after.problem is not None:
        return None, before.problem or after.problem or ""
    total = 0
    for rail in rails:
        then, now = before.devices.get((rail.device, rail.port)), after.devices.get((rail.device, rail.port))
        if then is None or now is None:
            return None, f"the node has no device {rail.device} with a port {rail.port}"
        first, last = then.sent_bytes, now.sent_bytes
        if first is None or last is None:
            return None, f"{rail.device} counts neither port_xmit_data nor sent_pkts"
        total += last - first if last >= first else last
    return total, ""


def _instead(before: Mapping[str, NodeState], after: Mapping[str, NodeState], node: str) -> str:
    """The interface that sent the most."""
    sent = {
        name: now.counts.get("tx_bytes", 0) - before[node].interfaces[name].counts.get("tx_bytes", 0)
        for name, now in after[node].interfaces.items()
        if name in before[node].interfaces
    }
    if not sent:
        return ""
    busiest = max(sent, key=lambda name: sent[name])
    return f" ({busiest} sent {sent[busiest]} B)" if sent[busiest] > 0 else ""
