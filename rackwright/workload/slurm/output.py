"""What Slurm's tools print, as types. Standard library only, Python 3.9: runs on nodes too.

The head may be broken or taken over, and users choose some of these words (names of jobs, reasons): what comes out is
printable and of limited length, and what is not such a table is NoAnswer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rackwright.boundary import printable
from rackwright.workload.states import HEALTH_PREFIX, DrainedBy, NoAnswer, NodeState, run_of

SINFO = ("sinfo", "-N", "-h", "-o", "%R|%N|%T|%u|%H|%E")
"""Partition, node, state, who set the reason, when, reason; a row per node and partition."""

NODES_MAX = 65_536
"""Names of one hostlist; Slurm's own limit is 65,533 nodes."""
_MARKS = "*+~#!%$@^-"
"""What Slurm puts behind a state: not responding, powering up or down, rebooting, planned (sinfo(1))."""
_DRAINED = frozenset(("DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "MAINT"))
_DOWN = frozenset(("DOWN", "NOT_RESPONDING", "FUTURE", "REBOOT_ISSUED", "POWERED_DOWN", "POWERING_DOWN"))
_AT_REST = frozenset(("IDLE", "DRAINED", "DOWN", "UNKNOWN", "FUTURE", "FAIL", "MAINT", "RESERVED", "PLANNED"))
"""Only these states prove that no job runs. sinfo shows IDLE+MAINT as `maint`, and so on."""
_AT_WORK = frozenset(("ALLOCATED", "MIXED", "COMPLETING", "DRAINING", "FAILING"))
_REBOOTING = frozenset(("REBOOT", "REBOOT_REQUESTED", "REBOOT_ISSUED"))
LINE_MAX_CHARACTERS = 16 * 2**10
"""Of one node, partition or reservation. A node's line has some 1,500."""
LINES_MAX = 100_000
BRACKETS_MAX = 20
_FIELD = re.compile(r"(?:^|\s)([A-Za-z:/]{1,64})=(\S*)")
_REASON = re.compile(r"\sReason=(.*?)\[([^\[\]\s@]{1,256}@[^\[\]\s]{1,256})\]")
_SLURMS_OWN = (
    "Prolog error",
    "Epilog error",
    "Kill task failed",
    "Not responding",
    "Low ",
    "gres/",
    "batch job complete",
)
"""Prefixes of reasons that slurmctld and slurmd write as root."""


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
    if run_of(reason) is not None:
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
        """The node as sinfo reports it."""
        reason = "" if self.reason == "none" else self.reason
        by = "" if self.user in ("", "Unknown") else f"{self.user}@{self.since}"
        return node_state(self.state, reason, by)

    @property
    def drained_by_health(self) -> bool:
        """Drained by a health check."""
        return self.node_state.drained_by_health


def parse_rows(output: str) -> list[Row]:
    """Parse the output of SINFO; raises NoAnswer for anything else."""
    rows = []
    for line in lines_of(output, "sinfo"):
        cells = line.split("|", 5)
        if len(cells) != 6 or not cells[1].strip() or not cells[2].strip():
            raise NoAnswer(f"`sinfo` printed something else: {printable(line, 80)}")
        rows.append(Row(*(printable(cell.strip(), 1000) for cell in cells)))
    return rows


def lines_of(output: str, tool: str) -> list[str]:
    """Its lines, without empty ones; NoAnswer where they are too many or too long."""
    lines = [line for line in map(str.strip, output.split("\n")) if line]
    if len(lines) > LINES_MAX or max(map(len, lines), default=0) > LINE_MAX_CHARACTERS:
        raise NoAnswer(
            f"`{tool}` printed {len(lines)} lines or a line longer than {LINE_MAX_CHARACTERS} characters"
        )
    return lines


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
    for line in lines_of(output, "scontrol show node"):
        reason = _REASON.search(line)
        values = dict(_FIELD.findall(line[: reason.start()] if reason else line))
        if "NodeName" not in values or "State" not in values:
            raise NoAnswer(f"`scontrol show node` printed something else: {printable(line, 80)}")
        values = {key: printable(value, 1000) for key, value in values.items()}
        words = (printable(word.strip(), 1000) for word in reason.groups()) if reason else ()
        found[values["NodeName"]] = NodeReport(
            name=values["NodeName"],
            state=node_state(values["State"], *words),
            cpus=_number(values.get("CPUTot")),
            memory_mib=_number(values.get("RealMemory")),
            gres="" if values.get("Gres", "") == "(null)" else values.get("Gres", ""),
        )
    return found


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch("[0-9]{1,18}", text) else None


def parse_fields(output: str) -> list[dict[str, str]]:
    """Lines of `Key=value` words, as `scontrol show partition -o` and `show topology` print them."""
    return [
        {key: printable(value) for key, value in _FIELD.findall(line)}
        for line in output.split("\n")
        if "=" in line
    ]


def parse_config(output: str) -> dict[str, str]:
    """`scontrol show config`: value by key."""
    pairs = (line.partition("=") for line in output.split("\n") if "=" in line)
    return {printable(key.strip(), 200): printable(value.strip(), 4096) for key, _, value in pairs}


def parse_hostlist(text: str) -> list[str]:
    """The names of a hostlist such as `gpu[001-003,007],login1`, in its order; ValueError for what is not one."""
    names: list[str] = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text.strip()):
        names += _expanded(part, NODES_MAX - len(names))
        if len(names) > NODES_MAX:
            raise ValueError(f"a hostlist has more than {NODES_MAX} names: {text[:40]}")
    return names


def _expanded(part: str, most: int) -> list[str]:
    stem, bracket, rest = part.partition("[")
    if not bracket:
        return [part]
    inside, _, tail = rest.partition("]")
    numbers: list[str] = []
    for piece in inside.split(","):
        first, last = _range(piece)
        if last - first >= most - len(numbers):
            raise ValueError(f"a hostlist has more than {NODES_MAX} names: {part[:40]}")
        width = len(piece.partition("-")[0])
        numbers += [str(number).zfill(width) for number in range(first, last + 1)]
    if tail.count("[") > BRACKETS_MAX:
        raise ValueError(f"a hostlist with more than {BRACKETS_MAX + 1} brackets")
    ends = _expanded(tail, most)
    if len(numbers) * len(ends) > most:
        raise ValueError(f"a hostlist has more than {NODES_MAX} names: {part[:40]}")
    return [f"{stem}{number}{end}" for number in numbers for end in ends]


def _range(piece: str) -> tuple[int, int]:
    found = re.fullmatch("([0-9]{1,9})(?:-([0-9]{1,9}))?", piece)
    if found is None:
        raise ValueError(f"{piece[:40]!r} in a hostlist is not a number or a range of numbers")
    return int(found[1]), int(found[2] or found[1])
