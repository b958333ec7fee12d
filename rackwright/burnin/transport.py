"""Finds the data path in NCCL's log with NCCL_DEBUG=INFO."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rackwright.burnin.finding import Finding
from rackwright.burnin.rails import Rail
from rackwright.model.ranges import fold
from rackwright.model.settings import Burnin
from rackwright.status import Status

LINE_MAX_CHARACTERS = 4096
# "n1:150770:150790 [0] NCCL INFO Channel 00/0 : 3[3] -> 8[0] [send] via NET/IB/0(3)/GDRDMA/Shared"
_CHANNEL = re.compile(r"NCCL INFO .*\[(?:send|receive)\] via NET/([^/]+)/(\S+)")
# "n1:150770:150790 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"
_USING = re.compile(r"(?:^|[\s:>])([A-Za-z0-9.-]+):\d+:\d+ \[\d+\] NCCL INFO NET/IB ?: Using ([^;]*)")
_DEVICE = re.compile(r"([A-Za-z0-9_]+):(\d+)/(?:IB|RoCE)")


@dataclass(frozen=True)
class Transports:
    """Inter-node connections by transport (`NET/IB/GDRDMA`, `NET/IB`, `NET/Socket` ...)."""

    connections: dict[str, int]

    def judge(self, declared: str) -> tuple[Status, str] | None:
        """None if every connection uses the declared transport, else a status and a message."""
        wanted = tuple(declared.strip("/").split("/"))
        if not self.connections:
            return Status.UNKNOWN, f"the log does not show the transport; {declared} is declared"
        others = {
            name: count
            for name, count in self.connections.items()
            if tuple(name.split("/"))[: len(wanted)] != wanted
        }
        if not others:
            return None
        total = sum(self.connections.values())
        shown = ", ".join(
            f"{count} of {total} connections via {name}" for name, count in sorted(others.items())
        )
        return Status.FAIL, f"{shown}; {declared} is declared"


def parse_transports(text: str) -> Transports:
    """Count the inter-node connections of each transport in a log of NCCL."""
    found: Counter[str] = Counter()
    for line in text.splitlines():
        if len(line) > LINE_MAX_CHARACTERS:
            continue  # the pattern takes minutes on a long line
        if match := _CHANNEL.search(line):
            gdr = "GDRDMA" in match[2].split("/")
            found[f"NET/{match[1]}/GDRDMA" if gdr else f"NET/{match[1]}"] += 1
    return Transports(dict(sorted(found.items())))


def parse_devices(text: str) -> dict[str, frozenset[str]]:
    """Devices that NCCL's verbs transport found on each host, as `mlx5_rail0:1` with the port; hosts by short name.

    It lists what NCCL_IB_HCA leaves of the ports that are active, and picks from these by itself.
    """
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        if len(line) <= LINE_MAX_CHARACTERS and (match := _USING.search(line)):
            names = {f"{name}:{port}" for name, port in _DEVICE.findall(match[2])}
            found.setdefault(match[1].split(".")[0], set()).update(names)
    return {host: frozenset(names) for host, names in found.items()}


def judge_devices(text: str, nodes: Sequence[str], meant: Sequence[str]) -> list[Finding]:
    """FAIL if NCCL found other devices than intended on a node, UNKNOWN if its log does not list them."""
    found = parse_devices(text)
    silent = [node for node in nodes if node.split(".")[0] not in found]
    findings = []
    by_difference: dict[str, list[str]] = {}
    for node in nodes:
        there = found.get(node.split(".")[0])
        if there is not None and there != frozenset(meant):
            lacks = [name for name in meant if name not in there]
            more = sorted(there - frozenset(meant))
            said = [f"did not find {', '.join(lacks)}"] if lacks else []
            said += [f"uses {', '.join(more)} too"] if more else []
            by_difference.setdefault(" and ".join(said), []).append(node)
    for difference, where in by_difference.items():
        why = f"transport: NCCL {difference} on {fold(where)}; declared: {', '.join(meant)}"
        findings.append(Finding(Status.FAIL, why))
    if silent:
        why = (
            f"transport: NCCL's log does not list the devices of {fold(silent)}; declared: {', '.join(meant)}"
        )
        findings.append(Finding(Status.UNKNOWN, why))
    return findings


def judge_nccl(
    settings: Burnin,
    rails: Sequence[Rail],
    devices: Sequence[str],
    text: str,
    nodes: Sequence[str],
    together: int,
) -> list[Finding]:
    """From NCCL's log; only between nodes. With declared RDMA devices, TCP is always wrong."""
    if together < 2:
        return []
    found = parse_transports(text)
    against = judge_devices(text, nodes, devices) if devices else []
    if settings.transport is not None:
        judged = found.judge(settings.transport)
        return against if judged is None else [*against, Finding(*judged)]
    sockets = found.connections.get("NET/Socket", 0)
    if not rails or not sockets:
        return against
    used = f"NCCL used TCP for {sockets} of {sum(found.connections.values())} connections"
    by_tcp = f"transport: {rails[0].kind} is declared, and {used} (NET/Socket)"
    return [*against, Finding(Status.FAIL, by_tcp)]
