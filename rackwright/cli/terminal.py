"""What all views share: the colour of each status, and a console for tables."""

from __future__ import annotations

from rich.console import Console

STYLES = {
    "FAIL": "bold red",
    "UNKNOWN": "bold magenta",
    "WARN": "yellow",
    "PASS": "green",
    "DISABLED": "cyan",
    "OUT OF SCOPE": "dim",
}
"""Value of a status, of a check or of a health check -> rich style."""


def wide_console() -> Console:
    """Standard output; where it is not a terminal, wide enough for tables (rich would assume 80)."""
    console = Console()
    return console if console.is_terminal else Console(width=160)
