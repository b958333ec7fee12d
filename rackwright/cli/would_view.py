"""What nodes would have drained themselves for, on a terminal."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from rackwright.cli.terminal import STYLES
from rackwright.health.guard.would import Episode
from rackwright.health.would import FleetWould, lasted, length
from rackwright.model.ranges import fold
from rackwright.status import Status
from rackwright.workload.states import HEALTH_PREFIX


def show_would(fleet: FleetWould, console: Console) -> None:
    """Print each episode of each node, the nodes without one, what is UNKNOWN, and the verdict."""
    for node in fleet.nodes:
        for episode in node.record.episodes if node.record is not None else ():
            _line(console, Status.FAIL, node.node, _text(episode))
    for node in fleet.nodes:
        if node.why is not None:
            _line(console, Status.UNKNOWN, node.node, node.why)
    quiet: dict[str, list[str]] = defaultdict(list)
    for node in fleet.of(Status.PASS):
        if node.record is not None:
            mode = "acting" if node.record.acts else "observing"
            quiet[f"nothing; {mode} since {_when(node.record.since)[:10]}"].append(node.node)
    for text, names in quiet.items():
        _line(console, Status.PASS, fold(names), text)
    worst = next((one for one in (Status.FAIL, Status.UNKNOWN) if fleet.of(one)), Status.PASS)
    console.print(Text(fleet.verdict, style=STYLES[worst]), soft_wrap=True)


def _line(console: Console, status: Status, nodes: str, text: str) -> None:
    word = "WOULD DRAIN" if status is Status.FAIL else status.value
    console.print(Text.assemble((word, STYLES[status]), "  ", (nodes, "bold"), "  ", text), soft_wrap=True)


def _text(episode: Episode) -> str:
    until = f" until {_when(episode.until)}" if episode.until is not None else ""
    passes = f"{episode.passes} pass{'es' if episode.passes != 1 else ''}"
    reason = episode.reason.removeprefix(HEALTH_PREFIX)
    return f"since {_when(episode.since)}{until} ({length(lasted(episode))}, {passes}): {reason}"


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
