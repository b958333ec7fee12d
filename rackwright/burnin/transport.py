"""Which way the data went, from what NCCL says with NCCL_DEBUG=INFO."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from rackwright.status import Status

LINE_MAX_CHARACTERS = 4096
# "n1:150770:150790 [0] NCCL INFO Channel 00/0 : 3[3] -> 8[0] [send] via NET/IB/0(3)/GDRDMA/Shared"
_CHANNEL = re.compile(r"NCCL INFO .*\[(?:send|receive)\] via NET/([^/]+)/(\S+)")


@dataclass(frozen=True)
class Transports:
    """Inter-node connections by transport (`NET/IB/GDRDMA`, `NET/IB`, `NET/Socket` ...)."""

    connections: dict[str, int]

    def judge(self, declared: str) -> tuple[Status, str] | None:
        """None when every connection is of the declared transport, else a status and a sentence."""
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
            continue  # the pattern would take minutes for a long one
        if match := _CHANNEL.search(line):
            gdr = "GDRDMA" in match[2].split("/")
            found[f"NET/{match[1]}/GDRDMA" if gdr else f"NET/{match[1]}"] += 1
    return Transports(dict(sorted(found.items())))
