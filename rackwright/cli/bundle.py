"""rackwright bundle: what an air-gapped site mirrors for a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rackwright.cli.arguments import AsJson, ClusterFile
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import ExitCode, RackwrightError

if TYPE_CHECKING:
    from rackwright.bundle.listing import Item, Listing
    from rackwright.bundle.outcome import Outcome
    from rackwright.bundle.registry import Registries
    from rackwright.model.cluster import Cluster


class TwoActions(RackwrightError):  # noqa: N818 - reads as a sentence
    """More than one action was requested."""

    exit_code = ExitCode.USAGE


def bundle_command(
    file: ClusterFile,
    resolve: Annotated[
        bool,
        typer.Option("--resolve", help="Read the digests of images from their registries into the lock."),
    ] = False,
    update: Annotated[
        bool, typer.Option("--update", help="With --resolve: replace digests that changed, too.")
    ] = False,
    pack: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Download images and files into this folder.")
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(metavar="URL|DIR", help="Check a registry, or a packed folder, for completeness."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List what the nodes of a cluster fetch: packages by OS, images, charts, manifests, wheels and files.

    Digests of images come from the cluster's lock, where only --resolve writes them. --pack goes on where an earlier run
    ended; images lie there as an OCI layout, which skopeo and crane copy to a registry. --check URL expects the
    repositories' names in that registry, and files below `mirrors.files`. Packages are listed and neither packed nor
    checked: the tools that mirror archives check their signatures.

    Exit status: 0 complete, 3 something is missing or different, 4 something could not be read.
    """
    _refuse_two_actions(resolve, update, pack, check)
    from rackwright.bundle.listing import list_items  # it loads pyinfra, which --help does not need
    from rackwright.bundle.outcome import exit_code

    cluster = load_cluster(file, locked=False)  # what the lock still lacks is what this lists
    listing = list_items(cluster)
    state = None
    outcomes: tuple[Outcome, ...] = ()
    if resolve:
        listing, outcomes, state = _resolve(cluster, listing, update)
    elif pack is not None:
        outcomes = _pack(cluster, listing, pack, as_json)
    elif check is not None:
        outcomes = _check(cluster, listing, check)
    if as_json:
        print_document("bundle", _document(cluster, listing, outcomes, state))
    else:
        acted = resolve or pack is not None or check is not None
        say("\n".join(_outcome_lines(outcomes, listing, state) if acted else _listing_lines(listing)))
    if code := exit_code(outcomes, listing.unknown):
        raise typer.Exit(int(code))


def _refuse_two_actions(resolve: bool, update: bool, pack: Path | None, check: str | None) -> None:
    if sum((resolve, pack is not None, check is not None)) > 1:
        raise TwoActions("--resolve, --pack and --check exclude each other.", hint="give one of them")
    if update and not resolve:
        raise TwoActions("--update belongs to --resolve.", hint="add --resolve")


def _registries(cluster: Cluster, plain: str | None = None) -> Registries:
    from rackwright.bundle.access import accesses_of
    from rackwright.bundle.registry import Access, Registries

    found = accesses_of(cluster)
    if plain is not None:
        found.setdefault(plain, Access(plain_http=True))
    return Registries(found)


def _resolve(cluster: Cluster, listing: Listing, update: bool) -> tuple[Listing, tuple[Outcome, ...], str]:
    from rackwright.bundle.resolve import resolve, write_digests

    listing, outcomes = resolve(listing, _registries(cluster), update=update)
    changed = write_digests(cluster, listing, outcomes)
    return listing, outcomes, "written" if changed else "unchanged"


def _pack(cluster: Cluster, listing: Listing, folder: Path, quiet: bool) -> tuple[Outcome, ...]:
    from rackwright.bundle.layout import Layout
    from rackwright.bundle.pack import pack
    from rackwright.bundle.web import Web

    def progress(one: Outcome) -> None:
        if not quiet:
            say(f"{one.status} {one.item.label}", err=True)

    return pack(listing, Layout(folder), _registries(cluster), Web(), progress)


def _check(cluster: Cluster, listing: Listing, target: str) -> tuple[Outcome, ...]:
    from rackwright.bundle.check import check_folder, check_mirror, registry_of
    from rackwright.bundle.web import Web

    if "://" not in target:
        folder = Path(target)
        if not folder.is_dir():
            raise RackwrightError(
                f"The folder {target} does not exist.", hint="for a registry give its URL, https://..."
            )
        return check_folder(listing, folder)
    registry, plain = registry_of(target)
    registries = _registries(cluster, registry if plain else None)
    return check_mirror(listing, registry, registries, cluster.mirrors.files, Web())


def _document(
    cluster: Cluster, listing: Listing, outcomes: tuple[Outcome, ...], state: str | None
) -> dict[str, object]:
    found = {id(one.item): one for one in outcomes}
    by_item = {one.item.item: one for one in found.values()}
    return {
        "cluster": cluster.name,
        "lock": state,
        "items": [
            {
                "kind": one.item.kind,
                "name": one.item.name,
                "package_version": one.item.version,
                "source": one.item.source,
                "sha256": one.item.sha256,
                "digest": one.digest,
                "platform": one.item.platform,
                "roles": list(one.roles),
                "status": str(by_item[one.item].status) if one.item in by_item else None,
                "evidence": by_item[one.item].evidence if one.item in by_item else None,
            }
            for one in listing.items
        ],
        "unknown": list(listing.unknown),
    }


def _listing_lines(listing: Listing) -> Iterator[str]:
    heading = ""
    for one in listing.items:
        title = f"{one.item.kind}s" + (f" of {one.item.platform}" if one.item.platform else "")
        if title != heading:
            yield f"{'' if not heading else chr(10)}{title}"
            heading = title
        yield f"  {_line(one)}"
    yield from (f"\nUNKNOWN {text}" for text in listing.unknown)


def _line(one: Item) -> str:
    parts = [one.item.name, one.item.version, one.digest, one.item.source]
    return "  ".join(part for part in parts if part)


def _outcome_lines(outcomes: tuple[Outcome, ...], listing: Listing, state: str | None) -> Iterator[str]:
    for one in outcomes:
        yield f"{one.status} {one.item.label}: {one.evidence}"
    yield from (f"UNKNOWN {text}" for text in listing.unknown)
    packages = len(listing.of("package"))
    if state is not None:
        yield f"The lock is {state}."
    else:
        yield f"{len(outcomes)} items; {packages} packages are not part of it"
