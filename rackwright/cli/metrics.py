"""rackwright metrics: what this control node knows of a cluster, for Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rackwright.atomic_write import write_atomically
from rackwright.cli.arguments import ClusterFile
from rackwright.cli.lines import say_exactly
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import RackwrightError
from rackwright.own_metrics.text import metrics_text


def metrics_command(
    file: ClusterFile,
    textfile: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Write a file for node_exporter's textfile collector instead."),
    ] = None,
) -> None:
    """Print the last runs, the last burn-in, verify and drift check as metrics. No node is asked.

    They are what this user's state folder on this machine has.
    """
    text = metrics_text(load_cluster(file).name)
    if textfile is None:
        say_exactly(text)
        return
    if textfile.suffix != ".prom":
        raise RackwrightError(
            f"node_exporter reads no file named {textfile.name}.",
            hint="e.g. `--textfile /path/rackwright.prom`",
        )
    try:
        write_atomically(textfile, text, mode=0o644, durable=False)
    except OSError as error:
        raise RackwrightError(f"{textfile} cannot be written: {error.strerror}.") from error
