"""Nodes as slurmctld has them: their states, what they have, and what of it is allocated."""

from __future__ import annotations

import re
from typing import NamedTuple

from rackwright.boundary import printable
from rackwright.workload.slurm.metrics.gres import gpus_of_gres, gpus_of_tres
from rackwright.workload.slurm.metrics.jobs import time_of
from rackwright.workload.states import NoAnswer

COMMAND = ("scontrol", "-d", "-o", "show", "nodes")
"""With -d it has GresUsed, which needs no AccountingStorageTRES. All text in it is the administrators'."""
STATES = (
    *("allocated", "down", "drained", "draining", "fail", "idle", "maint", "mixed", "not_responding"),
    "unknown",
)
"""States that are always reported, 0 where no node has them."""
_FIELD = re.compile(r"(?:^|\s)([A-Za-z]{1,32})=(\S*)")
_REASON = re.compile(
    r"\sReason=(.*?)\s?\[([^\[\]\s@]{1,256})@([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})\]",
    re.ASCII,
)
_MARKS = {
    "*": "not_responding",
    "~": "powered_down",
    "#": "powering_up",
    "!": "powering_down",
    "%": "powering_down",
    "$": "maint",
    "@": "reboot_requested",
    "^": "reboot_issued",
    "-": "planned",
}
"""Meaning of the marks after a state, from sinfo(1)."""
_SAME = {
    "alloc": "allocated",
    "failing": "fail",
    "maintenance": "maint",
    "mix": "mixed",
    "no_respond": "not_responding",
}
_BUSY = frozenset(("allocated", "mixed", "completing"))
_OUT = frozenset(("drained", "draining", "fail", "down"))


class Node(NamedTuple):
    """One node."""

    name: str
    states: frozenset[str]
    partitions: tuple[str, ...]
    cpus: int
    cpus_allocated: int
    gpus: int
    gpus_allocated: int
    reason: str = ""
    user: str = ""
    since: float | None = None

    @property
    def out(self) -> bool:
        """Whether it takes no jobs, by an operator's decision or because Slurm finds it broken."""
        return not self.states.isdisjoint(_OUT)


def parse_nodes(output: str) -> list[Node]:
    """What COMMAND prints; NoAnswer where it is not that."""
    nodes = [_node(line) for line in output.split("\n") if line.strip()]
    if not nodes:
        raise NoAnswer("`scontrol show nodes` printed no node")
    return nodes


def _node(line: str) -> Node:
    reason = _REASON.search(line)
    fields: dict[str, str] = {}
    for key, value in _FIELD.findall(line[: reason.start()] if reason else line):
        fields.setdefault(key, value)  # comments stand behind
    try:
        gpus = gpus_of_gres(fields.get("Gres", ""))
        # Gres is what slurmd has found, CfgTRES what slurm.conf allows: 0 where AccountingStorageTRES has no GPUs
        configured = gpus_of_tres(fields.get("CfgTRES", ""))
        used = fields.get("GresUsed")
        allocated = gpus_of_tres(fields.get("AllocTRES", "")) if used is None else gpus_of_gres(used).number
        return Node(
            name=printable(fields["NodeName"], 200),
            states=states_in(fields["State"]),
            partitions=tuple(printable(one, 200) for one in fields.get("Partitions", "").split(",") if one),
            cpus=int(fields["CPUTot"]),
            cpus_allocated=int(fields["CPUAlloc"]),
            gpus=min(gpus.number, configured or gpus.number),
            gpus_allocated=allocated,
            reason=printable(reason[1].strip(), 200) if reason else "",
            user=printable(reason[2], 200) if reason else "",
            since=time_of(reason[3]) if reason else None,
        )
    except (KeyError, ValueError):
        raise NoAnswer(f"`scontrol show nodes` printed something else: {printable(line, 80)}") from None


def states_in(text: str) -> frozenset[str]:
    """Each state that applies, e.g. drained and not_responding of `IDLE*+DRAIN`.

    A drained node is not idle as well: no job can start there. A draining one still is allocated or mixed.
    """
    found = set()
    for word in text.split("+"):
        bare = word.rstrip("".join(_MARKS))
        found |= {_MARKS[mark] for mark in word[len(bare) :]}
        if bare:
            name = printable(bare.lower(), 64)
            found.add(_SAME.get(name, name))
    if "drain" in found:
        found.remove("drain")
        found.add("drained" if found.isdisjoint(_BUSY) else "draining")
    if "drained" in found:
        found.discard("idle")
    return frozenset(found)
