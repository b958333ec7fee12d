"""rackwright map: racks, nodes and switches as a page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rackwright.atomic_write import write_atomically
from rackwright.cli.arguments import ClusterFile
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.clustermap.picture import document, picture
from rackwright.drawing.page import html
from rackwright.errors import ExitCode, RackwrightError
from rackwright.live.findings import Level
from rackwright.live.look import SECONDS, look
from rackwright.live.node import Live


def map_command(
    file: ClusterFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write the page; e.g. map.html."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Colour the nodes by what is known of them now.")
    ] = False,
    seconds: Annotated[
        float, typer.Option("--timeout", min=1, max=600, help="Seconds for all questions of --live together.")
    ] = SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the same as JSON.")] = False,
) -> None:
    """Draw racks, nodes and switches as one page of HTML that needs nothing else. Changes nothing.

    Without --live the page shows the declaration and no node is asked. With --live each node has the colour of
    its state in the workload manager, its last health check, the last drift check and the alerts that fire; what
    cannot be found out is UNKNOWN. Exit status 0: drawn; with --live 4: something is UNKNOWN.
    """
    if output is None and not as_json:
        raise RackwrightError(
            "Neither a page nor JSON was asked for.", hint=f"rackwright map {file} -o map.html"
        )
    cluster = load_cluster(file, locked=False)
    found: Live | None = None
    if live:
        with Console(stderr=True).status(f"asking about {len(cluster.nodes)} nodes ..."):
            found = look(cluster, seconds=seconds)
    if output is not None:
        _write(output, html(picture(cluster, found)))
    if as_json:
        print_document("map", document(cluster, found))
    elif found is not None:
        counts = ", ".join(f"{count} {level.value}" for level, count in found.counts.items() if count)
        say(f"{output}: {len(found.nodes)} nodes of {cluster.name}: {counts}")
    else:
        say(f"{output}: {len(cluster.nodes)} nodes of {cluster.name}, as declared")
    unknown = found is not None and found.counts[Level.UNKNOWN] > 0
    raise typer.Exit(int(ExitCode.UNKNOWN if unknown else ExitCode.CLEAN))


def _write(path: Path, text: str) -> None:
    try:
        write_atomically(path, text, mode=0o644)
    except OSError as error:
        raise RackwrightError(
            f"{path} cannot be written: {error.strerror}.", hint="name a file in a folder that exists"
        ) from error
