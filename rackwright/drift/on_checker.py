"""Brings the primary head to what asking all the others takes (`drift install --on head`)."""

from __future__ import annotations

from pyinfra.context import host

from rackwright.data import Site
from rackwright.drift import places
from rackwright.drift.checker import Piece, expected_path, folders, pieces
from rackwright.drift.declaration import Declaration
from rackwright.drift.placing import remove_units, textfile_link
from rackwright.facts.settings import Answer
from rackwright.operations import files, units


def checker(site: Site, declared: Declaration) -> None:
    """What it reads, its units, and the timer running."""
    cluster = site.cluster
    for folder in host.loop(folders(cluster)):  # type: ignore[no-untyped-call]
        _folder(folder)
    there: str | None = host.get_fact(Answer, read=f"cat {expected_path(cluster)}")
    for piece in host.loop(pieces(cluster, declared, site.secret, there)):  # type: ignore[no-untyped-call]
        _piece(piece)
    textfile_link(declared, places.metrics_name(cluster.name), places.state_of(cluster.name))
    unit = places.check_unit(cluster.name)
    units.unit(
        name="Run the timer that asks",
        unit=f"{unit}.timer",
        restart_on=(f"{places.UNITS}/{unit}.timer",),
        disruptive=False,
    )


def _folder(folder: Piece) -> None:
    files.directory(
        name=f"Make {folder.path}",
        path=folder.path,
        mode=folder.mode,
        owner=folder.owner,
        group=folder.group,
    )


def _piece(piece: Piece) -> None:
    files.file(
        name=f"Write {piece.path}",
        path=piece.path,
        content=piece.content,
        mode=piece.mode,
        owner=piece.owner,
        group=piece.group,
        sensitive=piece.sensitive,
    )


def no_checker(cluster: str, textfiles: str) -> None:
    """Nothing of it is left."""
    remove_units(places.check_unit(cluster))
    link = f"{textfiles}/{places.metrics_name(cluster)}"
    files.absent(name="Remove the link to the asking side's metrics", path=link)
    files.absent(name="Remove what the asking side reads", path=places.check_folder(cluster))
    files.absent(name="Remove its state of the cluster", path=places.state_of(cluster))
