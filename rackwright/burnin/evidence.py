"""The likely cause of a slow port, from its counters before and after, sysfs and the log of NCCL. Pure.

Names of counters as in the kernel's Documentation/ABI/stable/sysfs-class-infiniband, drivers/infiniband/hw/mlx5/counters.c
and drivers/infiniband/sw/rxe/rxe_hw_counters.c (read 2026-11-25).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rackwright.boundary import printable
from rackwright.burnin.counters import WORD_BYTES, NodeState, PortState, rise
from rackwright.burnin.rails import Rail

ERRORS = {
    "symbol_error": "symbol errors: the cable, its ends or the transceiver",
    "link_error_recovery": "link error recoveries: the link retrains",
    "link_downed": "times the link went down",
    "port_rcv_errors": "packets received with errors",
    "local_link_integrity_errors": "local link integrity errors",
    "excessive_buffer_overrun_errors": "buffer overruns",
    "port_xmit_discards": "packets discarded before they were sent",
    "rx_icrc_encapsulated": "RoCE packets with a wrong checksum",
    "rx_crc_errors": "frames with a wrong checksum: the cable or its ends",
}
"""An increase by one is reported."""
CONGESTION = {
    "packet_seq_err": "packets out of sequence: the path drops packets",
    "out_of_sequence": "packets received out of sequence: packets are lost, or the fabric routes adaptively",
    "local_ack_timeout_err": "late acknowledgements: the path drops packets",
    "roce_slow_restart": "restarts after lost packets",
    "np_ecn_marked_roce_packets": "packets marked by ECN: switches in the path are congested",
    "rp_cnp_handled": "congestion notifications handled: the fabric made this node send more slowly",
    "np_cnp_sent": "congestion notifications sent: incoming traffic is congested",
    "completer_retry_err": "retries of a completer: the path drops packets",
    "retry_exceeded_err": "transfers that were given up after retries",
}
"""A few are normal under load."""
CONGESTION_LEAST = 100
_WORD = re.compile(r"^([0-9.]{1,8})")
_COMPLETION = re.compile(r"NCCL WARN .{0,200}(?:Got completion from peer|got completion with|ibv_poll_cq)")


@dataclass(frozen=True)
class Declared:
    """The declared properties of a port."""

    rail: Rail
    speed_gbps: float | None = None
    mtu: int | None = None
    """Of the network interface, where the network is Ethernet."""
    max_ber: float | None = None


def evidence(before: NodeState | None, after: NodeState, declared: Declared) -> tuple[str, ...]:
    """Sentences about one port, most severe first; empty: its counters and its link are clean."""
    rail = declared.rail
    if after.problem is not None:
        return (f"its counters cannot be read: {after.problem}",)
    now = after.devices.get((rail.device, rail.port))
    if now is None:
        return (f"the node has no device {rail.device}",)
    then = before.devices.get((rail.device, rail.port)) if before is not None else None
    said = [*_link(now, declared), *_pcie(now), *_gid(now, rail)]
    said += [f"{rise(then, now, name)} {words}" for name, words in ERRORS.items() if rise(then, now, name)]
    said += _ber(then, now, declared)
    netdev = after.interfaces.get(rail.netdev or "")
    if netdev is not None:
        old = before.interfaces.get(rail.netdev or "") if before is not None else None
        if crc := rise(old, netdev, "rx_crc_errors"):
            said.append(f"{crc} {ERRORS['rx_crc_errors']} ({rail.netdev})")
        said += _mtu(netdev, declared)
    said += [
        f"{rise(then, now, name)} {words}"
        for name, words in CONGESTION.items()
        if rise(then, now, name) >= CONGESTION_LEAST
    ]
    return tuple(printable(one, 300) for one in said)


def _link(now: PortState, declared: Declared) -> list[str]:
    said = []
    state = now.link.get("state", "")
    if state and "ACTIVE" not in state:
        said.append(f"the port is {state.partition(': ')[2] or state}")
    rate = (
        None if declared.rail.software else _WORD.match(now.link.get("rate", ""))
    )  # rdma_rxe always reports 2.5
    if rate and declared.speed_gbps is not None and float(rate[1]) < declared.speed_gbps:
        said.append(f"the link runs at {rate[1]} Gb/s, declared {declared.speed_gbps:g}")
    return said


def _pcie(now: PortState) -> list[str]:
    said = []
    for what, unit in (("width", "lanes"), ("speed", "")):
        have, most = now.pcie.get(f"current_link_{what}", ""), now.pcie.get(f"max_link_{what}", "")
        one, two = _WORD.match(have), _WORD.match(most)
        if one and two and 0 < float(one[1]) < float(two[1]):
            words = f"{have} of {most} {unit}".strip() if unit else f"{have}, the device supports {most}"
            said.append(f"its PCIe link has {words}")
    return said


def _gid(now: PortState, rail: Rail) -> list[str]:
    if rail.gid is None or any(gid == rail.gid and kind == "RoCE v2" for gid, kind in now.gids.values()):
        return []
    return [f"it has no RoCE v2 GID of its declared address {rail.address}"]


def _ber(then: PortState | None, now: PortState, declared: Declared) -> list[str]:
    """Errors of the run per received bit: a lower bound, because a symbol error may affect several bits."""
    errors, words = rise(then, now, "symbol_error"), rise(then, now, "port_rcv_data")
    if not errors or not words:
        return []
    ber = errors / (8 * WORD_BYTES * words)
    limit = f" (at most {declared.max_ber:g} is declared)" if declared.max_ber is not None else ""
    return [f"a bit error rate of {ber:.1e} at least{limit}"]


def _mtu(netdev: PortState, declared: Declared) -> list[str]:
    mtu = netdev.link.get("mtu", "")
    if (
        declared.mtu is None
        or not mtu.isascii()
        or not mtu.isdigit()
        or len(mtu) > 6
        or int(mtu) == declared.mtu
    ):
        return []
    return [f"the MTU of {declared.rail.netdev} is {mtu}, declared {declared.mtu}"]


def from_log(text: str) -> tuple[str, ...]:
    """Evidence in NCCL's log about the data path."""
    said = []
    sockets = sum("via NET/Socket/" in line for line in text.splitlines())
    if sockets:
        said.append(f"NCCL used TCP: {sockets} connections via NET/Socket")
    failed = [line for line in text.splitlines() if len(line) < 4096 and _COMPLETION.search(line)]
    if failed:
        said.append(f"NCCL: {printable(failed[0].partition('NCCL WARN ')[2], 200)}")
    return tuple(said)


def joined(sentences: Sequence[str], most: int = 4) -> str:
    """The first sentences, joined."""
    return "; ".join(sentences[:most])
