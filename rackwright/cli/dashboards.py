"""rackwright dashboards: look at the cluster's metrics without Grafana, or write what Grafana reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from rackwright.atomic_write import write_atomically
from rackwright.cli.arguments import ClusterFile
from rackwright.cli.groups import offer
from rackwright.cli.lines import say
from rackwright.cli.terminal import Console
from rackwright.clusterfile.load import load_cluster
from rackwright.dashboards.catalogue import BY_NAME, DASHBOARDS
from rackwright.dashboards.collect import Page, State, collect
from rackwright.dashboards.model import Dashboard
from rackwright.dashboards.sources import for_cluster
from rackwright.documents.nearest import suggest
from rackwright.errors import ExitCode, RackwrightError
from rackwright.prometheus.query import run_queries

_SHOWN = 20

dashboards_app = typer.Typer(
    help="The cluster's metrics as pages of HTML (`render`), or as files for Grafana (`json`).",
)
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--dashboard",
        metavar="NAME",
        help="Only this dashboard; may be given several times.",
        autocompletion=offer(BY_NAME),
    ),
]


@dashboards_app.command("render")
def render_command(
    file: ClusterFile,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where the pages go. Default: reports/<cluster>-dashboards."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="How far to look back, e.g. 90m, 6h, 7d. Default: each dashboard's own."
        ),
    ] = None,
    dashboard: Names = None,
    chosen: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Value of a variable, e.g. node=gpu01 or job=1234; several times.",
        ),
    ] = None,
    require_data: Annotated[
        bool, typer.Option("--require-data", help="Exit with 4 where a panel has no data.")
    ] = False,
) -> None:
    """Draw each dashboard from the cluster's Prometheus as a page that needs no server and no network.

    Exit status: 0 written, 1 error, 4 with --require-data: a panel has no data, or no answer.
    """
    cluster = load_cluster(file, locked=False)
    wanted, values = _wanted(dashboard), _values(chosen or ())
    _need("plotly")
    from rackwright.dashboards.page import Site, write  # an extra, and half a second

    with Console(stderr=True).status(f"asking Prometheus of {cluster.name} ..."):
        pages = collect(
            cluster, wanted, lambda queries: run_queries(cluster, queries), since=since, chosen=values
        )
    folder = out or Path("reports") / f"{cluster.name}-dashboards"
    index = write(Site(cluster, pages, datetime.now(UTC)), folder)
    silent = _report(pages)
    say(f"written: {index}")
    raise typer.Exit(int(ExitCode.UNKNOWN if silent and require_data else ExitCode.CLEAN))


@dashboards_app.command("json")
def json_command(
    file: ClusterFile,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the files go.")],
    dashboard: Names = None,
) -> None:
    """Write dashboards as Grafana reads them, without the panels that this cluster cannot have."""
    cluster = load_cluster(file, locked=False)
    _need("grafana_foundation_sdk")
    from rackwright.dashboards.grafana import text  # an extra

    try:
        out.mkdir(parents=True, exist_ok=True)
        for one in _wanted(dashboard):
            fitting = for_cluster(one, cluster)
            if not fitting.rows:
                say(f"{one.name}: left out, the cluster has nothing of what it shows")
                continue
            path = out / f"{one.name}.json"
            write_atomically(path, text(fitting), mode=0o644, durable=False)
            say(str(path))
    except OSError as error:
        raise RackwrightError(f"The dashboards cannot be written to {out}: {error.strerror}.") from error


def _need(module: str) -> None:
    if find_spec(module) is None:
        raise RackwrightError(
            f"The Python package {module} is missing.", hint="pip install 'rackwright[dashboards]'"
        )


def _wanted(names: Sequence[str] | None) -> tuple[Dashboard, ...]:
    for name in names or ():
        if name not in BY_NAME:
            raise RackwrightError(
                f"There is no dashboard {name}.", hint=suggest(name, BY_NAME, what="dashboards")
            )
    return tuple(one for one in DASHBOARDS if not names or one.name in names)


def _values(given: Sequence[str]) -> dict[str, list[str]]:
    known = sorted({variable.name for one in DASHBOARDS for variable in one.variables})
    values: dict[str, list[str]] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not value:
            raise RackwrightError(f"{text!r} sets nothing.", hint="e.g. --set node=gpu01")
        if name not in known:
            raise RackwrightError(
                f"No dashboard has a variable {name}.", hint=suggest(name, known, what="variables")
            )
        values.setdefault(name, []).append(value)
    return values


def _report(pages: Sequence[Page]) -> int:
    """Prints what has no data and the totals; the number of panels without."""
    silent = [
        f"{page.name}: {drawn.panel.title}: {drawn.reason}"
        for page in pages
        for drawn in page.drawn
        if drawn.state in (State.NO_DATA, State.ERROR)
    ]
    for line in silent[:_SHOWN]:
        say(line)
    if silent[_SHOWN:]:
        say(f"... and {len(silent) - _SHOWN} more")
    data, nothing = (sum(page.count(state) for page in pages) for state in (State.DATA, State.NOTHING))
    left = sum(len(page.left_out) for page in {one.dashboard.name: one for one in pages}.values())
    say(
        f"dashboards: {data} panels with data, {nothing} with nothing to show, {len(silent)} without data, "
        f"{left} not on this cluster"
    )
    return len(silent)
