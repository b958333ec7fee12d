"""rackwright path: the folders of the shipped deploys, templates and roles, for plain pyinfra."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import rackwright
from rackwright.cli.lines import say_exactly


class Room(StrEnum):
    """A folder that ships with rackwright."""

    DEPLOYS = "deploys"
    TEMPLATES = "templates"
    ROLES = "roles"
    CATALOG = "catalog"


def path_command(room: Annotated[Room, typer.Argument(help="Which folder.")]) -> None:
    """Print the path of a shipped folder: pyinfra @rackwright/my.yaml "$(rackwright path deploys)/site.py"."""
    say_exactly(f"{Path(rackwright.__file__).resolve().parent / room}\n")
