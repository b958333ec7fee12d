"""Arguments that several commands share, so that they are named and explained once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ClusterFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="The cluster file, e.g. inventory/lab.yaml.")
]
Limit = Annotated[
    str | None, typer.Option(metavar="NODESET", help="Only these nodes, e.g. gpu[001-016],login1.")
]
Role = Annotated[
    list[str] | None, typer.Option(metavar="ROLE", help="Only this role; may be given several times.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show the whole plan: every operation, diff and new file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the JSON document.")]
"""Its schema is `rackwright schema NAME`."""
