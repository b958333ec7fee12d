"""Nodes typed to confirm, before a run takes them out of service."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from rackwright.boundary import printable
from rackwright.errors import FirmwareError
from rackwright.model.ranges import fold


def agree_to_nodes(nodes: Sequence[str], confirm: str | None) -> None:
    """Have the nodes typed; FirmwareError where something else is."""
    names = fold(nodes)
    typed = confirm
    if typed is None:
        if not sys.stdin.isatty():
            raise FirmwareError(
                "The nodes must be typed to confirm, and standard input is not a terminal.",
                hint=f"look at the plan above and run again with --confirm '{names}'",
            )
        typed = typer.prompt(f"Type {names} to confirm", default="", show_default=False, err=True)
    if str(typed).strip() != names:
        raise FirmwareError(
            f"{printable(str(typed), 60)!r} is not {names}; nothing was changed.",
            hint=f"confirm these nodes with: --confirm '{names}'",
        )
