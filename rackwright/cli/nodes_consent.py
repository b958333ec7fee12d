"""Nodes typed to confirm, before something that cannot be undone is done to them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from rackwright.boundary import printable
from rackwright.errors import RackwrightError
from rackwright.model.ranges import fold


def agree_to_nodes(nodes: Sequence[str], confirm: str | None) -> None:
    """Have the nodes typed; RackwrightError where something else is."""
    names = fold(nodes)
    typed = confirm
    if typed is None:
        if not sys.stdin.isatty():
            raise RackwrightError(
                "The nodes must be typed to confirm, and standard input is not a terminal.",
                hint=f"look at the plan above and run again with --confirm '{names}'",
            )
        typed = typer.prompt(f"Type {names} to confirm", default="", show_default=False, err=True)
    if str(typed).strip() != names:
        raise RackwrightError(
            f"{printable(str(typed), 60)!r} is not {names}; nothing was changed.",
            hint=f"confirm these nodes with: --confirm '{names}'",
        )
