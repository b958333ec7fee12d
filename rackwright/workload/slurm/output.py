"""What Slurm's tools print, as types. Standard library only, Python 3.9: runs on nodes too."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rackwright.workload.states import HEALTH_PREFIX, ROLLOUT_PREFIX, DrainedBy, NoAnswer, NodeState

SINFO = ("sinfo", "-N", "-h", "-o", "%R|%N|%T|%u|%H|%E")
"""Partition, node, state, who set the reason, when, reason; a row per node and partition."""

NODES_MAX = 65_536
"""Names of one hostlist; Slurm's own limit is 65,533 nodes."""
_DIGITS_MAX = 40
_MARKS = "*+~#!%$@^-"
"""What Slurm puts behind a state: not responding, powering up or down, rebooting, planned (sinfo(1))."""
_DRAINED = frozenset(("DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "MAINT"))
_DOWN = frozenset(("DOWN", "NOT_RESPONDING", "FUTURE", "REBOOT_ISSUED", "POWERED_DOWN", "POWERING_DOWN"))
_AT_REST = frozenset(("IDLE", "DRAINED", "DOWN", "UNKNOWN", "FUTURE", "FAIL", "MAINT", "RESERVED", "PLANNED"))
"""Without a word of these it is not known that no job runs. sinfo shows IDLE+MAINT as `maint`, and so on."""
_AT_WORK = frozenset(("ALLOCATED", "MIXED", "COMPLETING", "DRAINING", "FAILING"))
_REBOOTING = frozenset(("REBOOT", "REBOOT_REQUESTED", "REBOOT_ISSUED"))
_FIELD = re.compile(r"(?:^|\s)([A-Za-z:/]+)=(\S*)")
_REASON = re.compile(r"\sReason=(.*?)\s*\[([^\[\]\s]+@[^\[\]\s]+)\]")
_SLURMS_OWN = (
    "Prolog error",
    "Epilog error",
    "Kill task failed",
    "Not responding",
    "Low ",
    "gres/",
    "batch job complete",
)
"""How reasons begin that slurmctld and slurmd write in root's name."""


def node_state(text: str, reason: str = "", by: str = "") -> NodeState:
    """A state as sinfo (`drained*`) or scontrol (`IDLE+DRAIN`) prints it."""
    words = frozenset(word.rstrip(_MARKS).upper() for word in text.split("+")) - {""}
    drained, down = not words.isdisjoint(_DRAINED), not words.isdisjoint(_DOWN)
    return NodeState(
        text=text,
        words=words,
        drained=drained,
        down=down,
        busy=words.isdisjoint(_AT_REST) or not words.isdisjoint(_AT_WORK),
        ready=text.upper() == "IDLE",
        rebooting=not words.isdisjoint(_REBOOTING) or text.endswith("@"),
        reason=reason,
        by=by,
        drained_by=_drained_by(drained, reason, by) if drained or down else None,
    )


def _drained_by(drained: bool, reason: str, by: str) -> DrainedBy:
    if reason.startswith(HEALTH_PREFIX):
        return DrainedBy.HEALTH
    if reason.startswith(ROLLOUT_PREFIX):
        return DrainedBy.ROLLOUT
    own = reason.startswith(_SLURMS_OWN) or "unexpectedly rebooted" in reason
    if drained and by.partition("@")[0] not in ("", "slurm") and not own:
        return DrainedBy.PERSON
    return DrainedBy.MANAGER


@dataclass(frozen=True)
class Row:
    """One node of one partition."""

    partition: str
    node: str
    state: str
    user: str
    since: str
    reason: str

    @property
    def node_state(self) -> NodeState:
        """What sinfo says of the node."""
        reason = "" if self.reason == "none" else self.reason
        by = "" if self.user in ("", "Unknown") else f"{self.user}@{self.since}"
        return node_state(self.state, reason, by)

    @property
    def drained_by_health(self) -> bool:
        """Drained by a health check."""
        return self.node_state.drained_by_health


def parse_rows(output: str) -> list[Row]:
    """What SINFO prints; NoAnswer when it is not that."""
    rows = []
    for line in filter(None, map(str.strip, output.splitlines())):
        cells = line.split("|", 5)
        if len(cells) != 6 or not cells[1].strip() or not cells[2].strip():
            raise NoAnswer(f"`sinfo` printed something else: {line[:80]}")
        rows.append(Row(*(cell.strip() for cell in cells)))
    return rows


@dataclass(frozen=True)
class NodeReport:
    """One node as slurmctld has it."""

    name: str
    state: NodeState
    cpus: int | None
    memory_mib: int | None
    gres: str


def parse_nodes(output: str) -> dict[str, NodeReport]:
    """`scontrol show node -o`, a line per node, by name; NoAnswer when it is not that."""
    found = {}
    for line in filter(None, map(str.strip, output.splitlines())):
        reason = _REASON.search(line)
        values = dict(_FIELD.findall(line[: reason.start()] if reason else line))
        if "NodeName" not in values or "State" not in values:
            raise NoAnswer(f"`scontrol show node` printed something else: {line[:80]}")
        state = node_state(values["State"], *(reason.groups() if reason else ()))
        found[values["NodeName"]] = NodeReport(
            name=values["NodeName"],
            state=state,
            cpus=_number(values.get("CPUTot")),
            memory_mib=_number(values.get("RealMemory")),
            gres="" if values.get("Gres", "") == "(null)" else values.get("Gres", ""),
        )
    return found


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def parse_fields(output: str) -> list[dict[str, str]]:
    """Lines of `Key=value` words, as `scontrol show partition -o` and `show topology` print them."""
    return [dict(_FIELD.findall(line)) for line in output.splitlines() if "=" in line]


def parse_config(output: str) -> dict[str, str]:
    """`scontrol show config`: value by key."""
    pairs = (line.partition("=") for line in output.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def parse_hostlist(text: str) -> list[str]:
    """The names of a hostlist such as `gpu[001-003,007],login1`, in its order.

    ValueError where they are more than Slurm can have: a compromised head must not fill our memory.
    """
    names: list[str] = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text.strip()):
        names += _expanded(part)
        if len(names) > NODES_MAX:
            raise ValueError(f"a hostlist has more than {NODES_MAX} names: {text[:40]}")
    return names


def _expanded(part: str) -> list[str]:
    stem, bracket, rest = part.partition("[")
    if not bracket:
        return [part]
    inside, _, tail = rest.partition("]")
    numbers: list[str] = []
    for piece in inside.split(","):
        first, _, last = piece.partition("-")
        wanted = range(int(first), int(last or first) + 1)
        if len(piece) > _DIGITS_MAX or len(numbers) + len(wanted) > NODES_MAX:
            raise ValueError(f"a hostlist has more than {NODES_MAX} names: {part[:40]}")
        numbers += [str(number).zfill(len(first)) for number in wanted]
    ends = _expanded(tail)
    if len(numbers) * len(ends) > NODES_MAX:
        raise ValueError(f"a hostlist has more than {NODES_MAX} names: {part[:40]}")
    return [f"{stem}{number}{end}" for number in numbers for end in ends]
