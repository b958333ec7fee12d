"""rackwright init: a new site folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rackwright.cli.lines import say
from rackwright.init.site import make_site
from rackwright.init.start import Start


def init_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder; made if it does not exist.")],
    start: Annotated[Start, typer.Option("--from", help="What to start from: docs/examples.md.")] = Start.LAB,
) -> None:
    """Write a site folder: cluster file, README, an example role, a deploy, checks and a CI workflow.

    Ready for git. Files that are there with another text are never replaced: nothing is written then.
    """
    site = make_site(folder, start)
    for path in site.written:
        say(f"wrote {site.folder / path}")
    say(f"{site.file}: cluster {site.cluster}, from the example {start.value}")
    if start is Start.LAB:
        say(f"next: cd {site.folder}; rackwright lab up {site.file.name}")
    else:
        say(f"next: edit {site.file}; rackwright validate {site.file}")
