"""Plain lines on standard output and standard error: what a node wrote is printable there. Loads no rich."""

from __future__ import annotations

import sys

import typer

from rackwright.boundary import printable_lines


def say(text: str, *, err: bool = False) -> None:
    """Print lines without colours, on standard output or on standard error."""
    typer.echo(printable_lines(text), err=err)


def say_exactly(text: str) -> None:
    """Print the text of a file or a path as it is, for another program; a terminal gets it made printable."""
    sys.stdout.write(printable_lines(text) if sys.stdout.isatty() else text)
