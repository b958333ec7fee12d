"""Counters of a node's RDMA devices and network interfaces from sysfs, before and after a run. The parser is pure.

Paths as in the kernel's Documentation/ABI/stable/sysfs-class-infiniband (read 2026-11-25): `port_xmit_data` and
`port_rcv_data` count words of 4 bytes. Software devices (rdma_rxe) lack these counters; their `hw_counters` count packets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rackwright.errors import ConnectionFailed
from rackwright.render import render
from rackwright.ssh import RootShell
from rackwright.ssh.side_by_side import side_by_side

NODES_AT_ONCE = 64
READ_SECONDS = 60
WORD_BYTES = 4
"""Of port_xmit_data and port_rcv_data."""
LINES_MAX = 20_000
_LINE = re.compile(r"^(device|port|interface|pcie|link|count|gid) (\S{1,80})(?: (.{0,200}))?$")
_COUNT = re.compile(r"^[0-9]{1,20}$")


@dataclass(frozen=True)
class PortState:
    """One port of a device, or a network interface (port 0)."""

    counts: Mapping[str, int] = field(default_factory=dict)
    link: Mapping[str, str] = field(default_factory=dict)
    """`state`, `rate`, `link_layer`, `mtu` and so on, as in sysfs."""
    pcie: Mapping[str, str] = field(default_factory=dict)
    gids: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By index: the GID and its type."""

    @property
    def sent_bytes(self) -> int | None:
        """Bytes sent by RDMA; None: not counted. For software devices, an upper bound from their packets."""
        words = self.counts.get("port_xmit_data")
        if words is not None:
            return words * WORD_BYTES
        packets = self.counts.get("sent_pkts")
        mtu = self.link.get("mtu", "")
        if packets is None:
            return None
        return packets * (int(mtu) if mtu.isascii() and mtu.isdigit() and len(mtu) < 7 else 4096)


@dataclass(frozen=True)
class NodeState:
    """One node at one time."""

    devices: Mapping[tuple[str, int], PortState] = field(default_factory=dict)
    """By device and port."""
    interfaces: Mapping[str, PortState] = field(default_factory=dict)
    problem: str | None = None
    """Why it could not be read."""


def counters_script() -> str:
    """POSIX sh whose output `parse_counters` reads."""
    return render("burnin/counters.sh.j2")


def parse_counters(text: str) -> NodeState:
    """Parse the script's output; a truncated text gives only a problem."""
    lines = text.splitlines()
    if len(lines) > LINES_MAX or "end" not in lines[-3:]:
        return NodeState(problem="the list of counters is truncated")
    devices: dict[tuple[str, int], PortState] = {}
    interfaces: dict[str, PortState] = {}
    device, now = "", PortState({}, {}, {}, {})
    pcie: dict[str, str] = {}
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            continue
        what, key, value = found[1], found[2], (found[3] or "").strip()
        if what == "device":
            device, pcie, now = key, {}, PortState({}, {}, {}, {})
        elif what == "port" and key.isascii() and key.isdigit() and len(key) < 4:
            now = PortState({}, {}, pcie, {})
            devices[device, int(key)] = now
        elif what == "interface":
            now = PortState({}, {}, {}, {})
            interfaces[key] = now
        elif what == "pcie":
            pcie[key] = value
        else:
            _add(now, what, key, value)
    return NodeState(devices, interfaces)


def _add(state: PortState, what: str, key: str, value: str) -> None:
    if what == "count" and _COUNT.match(value):
        state.counts[key] = int(value)  # type: ignore[index]  # filled here alone
    elif what == "link":
        state.link[key] = value  # type: ignore[index]
    elif what == "gid":
        gid, _, kind = value.partition(" ")
        state.gids[key] = (gid, kind)  # type: ignore[index]


def read_counters(shell: RootShell, nodes: Sequence[str], factor: int = 1) -> dict[str, NodeState]:
    """The counters of every node, read in parallel; a node that does not answer has a problem."""

    def one(node: str) -> NodeState:
        try:
            result = shell.run(node, counters_script(), timeout=READ_SECONDS * factor)
        except ConnectionFailed as error:
            return NodeState(problem=error.message)
        if result.exit_status != 0:
            return NodeState(problem=f"the counters cannot be read: exit status {result.exit_status}")
        return parse_counters(result.stdout)

    with side_by_side(NODES_AT_ONCE) as executor:
        return dict(zip(nodes, executor.map(one, nodes), strict=True))


def rise(before: PortState | None, after: PortState, name: str) -> int:
    """The increase of a counter; 0 if it is missing. A counter that was reset counts from 0."""
    now = after.counts.get(name, 0)
    then = before.counts.get(name, 0) if before is not None else 0
    return now - then if now >= then else now
