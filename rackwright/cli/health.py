"""rackwright health: probe the nodes and compare them with the declaration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rackwright.cli.arguments import Limit
from rackwright.cli.health_view import show_health
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.cli.terminal import Console, wide_console
from rackwright.cli.would_view import show_would
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import RackwrightError
from rackwright.health.run import FleetHealth, health
from rackwright.health.saved import judged
from rackwright.health.would import would
from rackwright.model.cluster import Cluster

SavedDocument = Annotated[
    Path | None,
    typer.Option(
        metavar="DOC",
        help="Judge this saved document, or the saved output of nvidia-smi, dmesg, ...; connects to no node.",
    ),
]
ShownGpus = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="With a capture of fewer GPUs than the SKU has: how many."),
]


def health_command(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The cluster file, e.g. inventory/lab.yaml.")
    ] = None,
    limit: Limit = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON document.")] = False,
    fast: Annotated[
        bool, typer.Option("--fast", help="Only the checks that nodes run themselves, under Slurm.")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write each node's document as DIR/NODE.json.")
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="With --save: pseudonyms for names, addresses and serials.")
    ] = False,
    document: SavedDocument = None,
    sku: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --document and no FILE: the SKU it should be.")
    ] = None,
    gpus: ShownGpus = None,
    would_drain: Annotated[
        bool, typer.Option("--would", help="What observing nodes would have drained themselves for.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what passes too.")] = False,
) -> None:
    """Probe every node once and compare what it reports with the declaration.

    Exit status 0: nothing failed and nothing is unknown, 3: a check failed, 4: something is
    UNKNOWN. A saved document needs no node: `--document DOC --sku NAME`, or with FILE, where the
    node it names is looked up. Also judges captures: `nvidia-smi -q [-x]`, `nvidia-smi nvlink`,
    `nvidia-smi topo -m`, a kernel log, `lspci -vvv` and others, by what they hold alone.

    --would probes nothing and reads the records of nodes that only observe (health.act: false), 30 days
    at most. Exit status 0: nothing would have been drained, 3: a node would, else 4: one is UNKNOWN.
    """
    if redact and (save is None or document is not None):
        raise typer.BadParameter("--redact needs FILE and --save DIR")
    if document is None and (file is None or sku is not None or gpus is not None):
        raise typer.BadParameter("give a cluster file, or --document DOC and --sku NAME")
    if would_drain:
        raise typer.Exit(_would(file, limit, as_json=as_json))
    if document is not None:
        fleet = _saved(file, document, sku, gpus)
    else:
        fleet = _probed(file, limit, fast=fast, save=save, redact=redact)
    for node, why in fleet.not_saved.items():
        say(f"{node}: its document was not written to {save}: {why}", err=True)
    _print(fleet, as_json=as_json, verbose=verbose)
    raise typer.Exit(int(fleet.exit_code))


def _print(fleet: FleetHealth, *, as_json: bool, verbose: bool) -> None:
    if as_json:
        print_document("health", fleet.to_json())
    else:
        show_health(fleet, wide_console(), verbose=verbose)


def _probed(
    file: Path | None, limit: str | None, *, fast: bool, save: Path | None, redact: bool
) -> FleetHealth:
    cluster = _cluster(file)
    with Console(stderr=True).status(f"probing the nodes of {cluster.name} ..."):
        return health(cluster, limit=limit, fast=fast, save=save, redact=redact)


def _cluster(file: Path | None) -> Cluster:
    if file is None:
        raise typer.BadParameter("give a cluster file")
    return load_cluster(file)


def _would(file: Path | None, limit: str | None, *, as_json: bool) -> int:
    """What the nodes of a cluster file recorded."""
    cluster = _cluster(file)
    with Console(stderr=True).status(f"reading the records of {cluster.name} ..."):
        fleet = would(cluster, limit=limit)
    if as_json:
        print_document("health.would", fleet.to_json())
    else:
        show_would(fleet, wide_console())
    return int(fleet.exit_code)


def _saved(file: Path | None, document: Path, sku: str | None, gpus: int | None) -> FleetHealth:
    """Judge a saved document by a SKU, or by the node of a cluster file."""
    try:
        text = document.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise RackwrightError(f"The document {document} cannot be read: {error}.") from None
    return judged(text, file, sku, gpus)
