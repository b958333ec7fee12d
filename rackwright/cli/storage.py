"""rackwright storage: the declared filesystems, and what they reach."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rackwright.cli.arguments import AsJson, ClusterFile, Limit
from rackwright.cli.json_output import print_document
from rackwright.cli.progress import Waiting
from rackwright.cli.storage_view import show_bench, show_filesystems
from rackwright.cli.terminal import Console, wide_console
from rackwright.clusterfile.load import load_cluster
from rackwright.durations import Durations
from rackwright.storage.plan import chosen
from rackwright.storage.run import bench
from rackwright.storage.shown import show_json

storage_app = typer.Typer(
    help="Declared filesystems, and the rates they reach.",
)

Name = Annotated[
    str | None, typer.Option("--fs", metavar="FILESYSTEM", help="Only this filesystem. Default: all.")
]


@storage_app.command("show")
def show_command(file: ClusterFile, name: Name = None, as_json: AsJson = False) -> None:
    """Show the declared filesystems: servers, the nodes that mount them, and floors."""
    cluster = load_cluster(file, locked=False)
    filesystems = chosen(cluster, name)
    if as_json:
        print_document("storage.show", show_json(cluster, filesystems))
    else:
        show_filesystems(cluster, filesystems, wide_console())


@storage_app.command("bench")
def bench_command(
    file: ClusterFile,
    name: Name = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Write at most 256 MiB a job; figures are not compared with whole runs."
        ),
    ] = False,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """Measure filesystems through the workload manager, each node alone and all together, against their floors.

    It writes to a separate folder below each mount point and removes it. Exit status: 0 all floors are reached, 3 a floor
    is missed or data is wrong, 4 something is UNKNOWN.
    """
    _run(file, name, limit, quick=quick, only_checkpoint=False, as_json=as_json)


@storage_app.command("checkpoint")
def checkpoint_command(
    file: ClusterFile, name: Name = None, limit: Limit = None, as_json: AsJson = False
) -> None:
    """Save checkpoints with PyTorch, kill a rank in mid-write, and resume from the previous save.

    Exit status: 0 training resumed and reached the same state, 3 it did not, or a save takes too long, 4 something
    is UNKNOWN.
    """
    _run(file, name, limit, quick=False, only_checkpoint=True, as_json=as_json)


def _run(
    file: Path, name: str | None, limit: str | None, *, quick: bool, only_checkpoint: bool, as_json: bool
) -> None:
    cluster = load_cluster(file)
    with Waiting(Console(stderr=True), Durations(cluster.name, "storage-bench")) as waiting:
        report = bench(
            cluster,
            name=name,
            limit=limit,
            quick=quick,
            only_checkpoint=only_checkpoint,
            progress=waiting.step,
        )
    if as_json:
        print_document("storage", report.to_json())
    else:
        show_bench(report, wide_console())
    raise typer.Exit(int(report.exit_code))
