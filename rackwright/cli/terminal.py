"""What all views share: the colour of each status, and a terminal to which no node can write.

Everything the command line prints goes through `Console` or rackwright.cli.lines: control characters that a node put into its
answers are shown as their escapes, so they cannot move the cursor, hide a line or set the window's title.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rich.console
from rich.segment import Segment

from rackwright.boundary import printable_lines

STYLES = {
    "FAIL": "bold red",
    "UNKNOWN": "bold magenta",
    "WARN": "yellow",
    "PASS": "green",
    "DISABLED": "cyan",
    "OUT OF SCOPE": "dim",
}
"""Value of a status, of a check or of a health check -> rich style."""


class Console(rich.console.Console):
    """rich's, whose output has no other control characters than those of rich's own styles and cursor movements."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - rich's own
        super().__init__(emoji=False, **options)  # `:name:` in a node's text stays as it is

    def render(
        self,
        renderable: rich.console.RenderableType,
        options: rich.console.ConsoleOptions | None = None,
    ) -> Iterable[Segment]:
        """Each piece of text with its style, made printable."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable_lines(segment.text), segment.style)


def wide_console() -> Console:
    """Standard output; where it is not a terminal, wide enough for tables (rich would assume 80)."""
    console = Console()
    return console if console.is_terminal else Console(width=160)
