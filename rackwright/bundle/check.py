"""Whether a mirror or a packed folder has everything: each missing or different item by name."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from rackwright.bundle.layout import Layout, sha256_of
from rackwright.bundle.listing import Item, Listing
from rackwright.bundle.outcome import Outcome, judged
from rackwright.bundle.registry import INDEXES, Manifest, Registries, read_manifest
from rackwright.bundle.web import Unreadable, Web, Wrong
from rackwright.lock.references import Reference, parse

_NOT_LOCKED = "its digest is not locked; run `rackwright bundle FILE --resolve`"


def check_folder(listing: Listing, folder: Path) -> tuple[Outcome, ...]:
    """A folder that `--pack` made."""
    layout = Layout(folder)
    return _each(listing, lambda item: _image_in(item, layout), lambda item: _file_in(item, layout))


def check_mirror(
    listing: Listing, registry: str, registries: Registries, files: str | None, web: Web
) -> tuple[Outcome, ...]:
    """A registry that keeps the repositories' names, and the site's file server (`mirrors.files`)."""
    return _each(
        listing,
        lambda item: _image_at(item, registry, registries),
        lambda item: _file_at(item, files, web),
    )


def registry_of(target: str) -> tuple[str, bool]:
    """host[:port] of `--check URL`, and whether it is plain http."""
    parts = urlsplit(target)
    return parts.netloc, parts.scheme == "http"


def _each(listing: Listing, image: Callable[[Item], str], file: Callable[[Item], str]) -> tuple[Outcome, ...]:
    found = []
    for item in listing.items:
        if item.item.kind != "package":
            act = image if item.item.kind == "image" else file
            found.append(judged(item, lambda item=item, act=act: act(item)))  # type: ignore[misc]
    return tuple(found)


def _image_in(item: Item, layout: Layout) -> str:
    named = layout.named()
    if item.item.name not in named:
        raise Wrong("is missing")
    digest = named[item.item.name]
    if item.digest is None:
        raise Unreadable(_NOT_LOCKED)
    if digest != item.digest:
        raise Wrong(f"is {digest} instead of {item.digest}")
    return f"{_blobs_in(digest, layout, item.item.name)} blobs"


def _blobs_in(digest: str, layout: Layout, name: str) -> int:
    if not layout.has(digest):
        raise Wrong(
            f"lacks {digest}" if not layout.blob(digest).exists() else f"has another content under {digest}"
        )
    manifest = read_manifest(layout.blob(digest).read_bytes(), digest, None, name)
    count = 1
    for child in manifest.children:
        if manifest.media_type in INDEXES:
            count += _blobs_in(child.digest, layout, name)
        elif not layout.has(child.digest):
            there = layout.blob(child.digest).exists()
            raise Wrong(f"has another content under {child.digest}" if there else f"lacks {child.digest}")
        else:
            count += 1
    return count


def _image_at(item: Item, registry: str, registries: Registries) -> str:
    if item.digest is None:
        raise Unreadable(_NOT_LOCKED)
    reference = parse(item.item.name).at(registry)
    manifest = registries.manifest(reference)
    if manifest.digest != item.digest:
        raise Wrong(f"is {manifest.digest} at {registry} instead of {item.digest}")
    return f"{_blobs_at(reference, manifest, registries)} blobs"


def _blobs_at(reference: Reference, manifest: Manifest, registries: Registries) -> int:
    count = 1
    for child in manifest.children:
        if manifest.media_type in INDEXES:
            count += _blobs_at(reference, registries.manifest(reference, child.digest), registries)
        elif not registries.has_blob(reference, child):
            raise Wrong(f"{reference.registry} lacks {child.digest}")
        else:
            count += 1
    return count


def _file_in(item: Item, layout: Layout) -> str:
    path = layout.file(item.item.kind, item.item.name)
    if not path.is_file():
        raise Wrong("is missing")
    return _same(item, sha256_of(path))


def _file_at(item: Item, files: str | None, web: Web) -> str:
    if files is None:
        raise Unreadable("the cluster file declares no `mirrors.files`, where it would be")
    url = f"{files.rstrip('/')}/{Path(item.item.name).name}"
    status, _, found = web.stream(url, lambda chunk: None)
    if status == HTTPStatus.NOT_FOUND:
        raise Wrong(f"{url} does not exist")
    if status != HTTPStatus.OK:
        raise Unreadable(f"{url} answers {status}")
    return _same(item, found)


def _same(item: Item, found: str) -> str:
    if item.item.sha256 is None:
        raise Unreadable(f"no SHA-256 is declared for it; the one there is {found}")
    if found != item.item.sha256:
        raise Wrong(f"has the SHA-256 {found} instead of {item.item.sha256}")
    return f"SHA-256 {found[:12]}"
