"""What BeeGFS' client shows in /proc/fs/beegfs: pure functions of text."""

from __future__ import annotations

import re
from typing import NamedTuple

from rackwright.claims.check import Undetermined

NODES = "cat /proc/fs/beegfs/*/meta_nodes /proc/fs/beegfs/*/storage_nodes"
STATES = "cat /proc/fs/beegfs/*/meta_target_state /proc/fs/beegfs/*/storage_target_state"
_NODE = re.compile(r"(?P<name>.+) \[ID: \d+\]")
_CONNECTIONS = re.compile(r"\s+Connections: (?P<all>.*)")
_STATE = re.compile(r"\[Target ID: (?P<id>\d+)\] @ (?P<node>.+): (?P<reach>\S+) / (?P<state>\S+)\s*")


class Connections(NamedTuple):
    """Connections of the client to a server."""

    tcp: int
    rdma: int


def parse_nodes(text: str) -> tuple[tuple[str, Connections], ...]:
    """Servers with their connections (ProcFsHelper.c of BeeGFS 8.3.1, read 2026-11-26).

    A name comes twice where a host serves metadata and data, or where two filesystems name their servers alike.
    """
    found: list[tuple[str, Connections]] = []
    name = None
    for line in text.splitlines():
        if (match := _CONNECTIONS.fullmatch(line)) is not None and name is not None:
            counts = dict(re.findall(r"(TCP|RDMA): (\d+)", match["all"]))
            found.append((name, Connections(int(counts.get("TCP", 0)), int(counts.get("RDMA", 0)))))
        elif (match := _NODE.fullmatch(line)) is not None:
            name = match["name"]
    if not found:
        raise Undetermined(f"the client shows no servers: {text.strip()[:80]!r}")
    return tuple(found)


def parse_states(text: str) -> tuple[tuple[str, str], ...]:
    """Each target, by its ID and server, with its state, e.g. `Online / Good`; two may have one ID and server name."""
    found = []
    for line in text.splitlines():
        match = _STATE.fullmatch(line)
        if match is None:
            raise Undetermined(f"not a line about a target: {line[:80]!r}")
        found.append((f"{match['id']} @ {match['node']}", f"{match['reach']} / {match['state']}"))
    if not found:
        raise Undetermined("the client shows no targets")
    return tuple(found)
