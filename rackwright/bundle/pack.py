"""Downloads what can be fetched into a bundle's folder; a second run fetches only what is not there yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from http import HTTPStatus

from rackwright.atomic_write import write_atomically
from rackwright.bundle.layout import Layout, sha256_of
from rackwright.bundle.listing import Item, Listing
from rackwright.bundle.outcome import Outcome, judged
from rackwright.bundle.registry import INDEXES, Manifest, Registries
from rackwright.bundle.web import Unreadable, Web, Wrong
from rackwright.lock.references import Reference, parse


def pack(
    listing: Listing,
    layout: Layout,
    registries: Registries,
    web: Web,
    report: Callable[[Outcome], object] = lambda one: None,
) -> tuple[Outcome, ...]:
    """Every image and file; packages are listed by OS, for the tools that mirror archives."""
    layout.create()
    outcomes = []
    for item in listing.items:
        if item.item.kind == "package":
            continue
        act = _pack_image if item.item.kind == "image" else _pack_file
        outcomes.append(judged(item, lambda item=item, act=act: act(item, layout, registries, web)))  # type: ignore[misc]
        report(outcomes[-1])
    _write_package_lists(listing, layout)
    return tuple(outcomes)


def _pack_image(item: Item, layout: Layout, registries: Registries, web: Web) -> str:
    """By its locked digest, with the images of all platforms in it."""
    if item.digest is None:
        raise Unreadable("its digest is not locked; run `rackwright bundle FILE --resolve`")
    reference = parse(item.item.name)
    counts: Counter[str] = Counter()
    top = _fetch(reference, item.digest, layout, registries, counts)
    layout.name(item.item.name, top)
    return f"{counts['fetched']} of {counts['all']} blobs fetched"


def _fetch(
    reference: Reference, digest: str, layout: Layout, registries: Registries, counts: Counter[str]
) -> Manifest:
    """A manifest after all that it names."""
    manifest = registries.manifest(reference, digest)
    for child in manifest.children:
        if manifest.media_type in INDEXES:
            _fetch(reference, child.digest, layout, registries, counts)
            continue
        counts["all"] += 1
        if not layout.has(child.digest):
            counts["fetched"] += 1
            layout.write(
                layout.blob(child.digest),
                lambda sink, child=child: registries.fetch_blob(reference, child, sink),  # type: ignore[misc]
            )
    if not layout.has(digest):
        layout.write(layout.blob(digest), lambda sink: _put(sink, manifest.body))
    return manifest


def _put(sink: Callable[[bytes], object], content: bytes) -> None:
    sink(content)


def _pack_file(item: Item, layout: Layout, registries: Registries, web: Web) -> str:
    del registries
    url, wanted = item.item.source, item.item.sha256
    if url is None:
        raise Unreadable("no URL is known for it")
    path = layout.file(item.item.kind, item.item.name)
    if wanted is not None and path.is_file() and sha256_of(path) == wanted:
        return "there already"

    def fill(sink: Callable[[bytes], object]) -> None:
        status, _, found = web.stream(url, sink)
        if status == HTTPStatus.NOT_FOUND:
            raise Wrong(f"{url} does not exist")
        if status != HTTPStatus.OK:
            raise Unreadable(f"{url} answers {status}")
        if wanted is None:
            raise Unreadable(f"no SHA-256 is declared for it; {url} has {found}")
        if found != wanted:
            raise Wrong(f"{url} has the SHA-256 {found} instead of {wanted}")

    layout.write(path, fill)
    return "fetched"


def _write_package_lists(listing: Listing, layout: Layout) -> None:
    lists: dict[str, list[str]] = {}
    for one in listing.of("package"):
        version = f"={one.item.version}" if one.item.version else ""
        lists.setdefault(one.item.platform or "any", []).append(f"{one.item.name}{version}\n")
    folder = layout.folder / "packages"
    folder.mkdir(exist_ok=True)
    for os, lines in lists.items():
        write_atomically(folder / f"{os}.txt", "".join(sorted(set(lines))), mode=0o644)
