"""How lines of the nodes' journals are shown: one line each, what a node wrote made printable."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from rich.text import Text

from rackwright.boundary import printable, printable_block
from rackwright.cli.lines import say
from rackwright.cli.terminal import STYLES, Console
from rackwright.logs.report import Line, LogsReport

_SHOWN = 2000
"""Characters of a message."""
_ERROR, _WARNING = 3, 4
"""syslog(3)."""


def show_lines(lines: Iterable[Line]) -> None:
    """Time in UTC, node, program, message; a complaint of the kernel with its fields behind it."""
    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(_shown(line))


def _shown(line: Line) -> Text:
    at = datetime.fromtimestamp(line.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    program = printable(line.name or line.unit or "?", 60)
    process = "" if line.pid is None or line.kernel else f"[{line.pid}]"
    important = 7 if line.priority is None else line.priority
    style = "bold red" if important <= _ERROR else "yellow" if important <= _WARNING else ""
    parts: list[str | tuple[str, str]] = [
        (at, "dim"),
        " ",
        (line.node, "bold"),
        f" {program}{process}: ",
        (printable_block(line.message, _SHOWN), style),
    ]
    if line.fields:
        words = ", ".join(
            f"{printable(key, 60)} {printable(str(value), 200)}" for key, value in line.fields.items()
        )
        parts.append((f"  [{words}]", "cyan"))
    if line.trusted is False and line.facility in (4, 10):
        parts.append((f"  [uid {line.uid} wrote it]", STYLES["WARN"]))
    return Text.assemble(*parts)


def show_doubts(report: LogsReport, asked: int) -> None:
    """On standard error: what is left out, and what is not known."""
    if report.more:
        say(
            f"older lines were left out; the newest {len(report.lines)} are shown: --lines, or ask for less",
            err=True,
        )
    if not report.lines:
        say(f"no matching line in the {report.store} store on {report.server}", err=True)
    show_unknown(report.unknown)


def show_unknown(texts: Iterable[str]) -> None:
    """On standard error: what is not known."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for text in texts:
        console.print(Text.assemble(("UNKNOWN ", STYLES["UNKNOWN"]), text))
