"""Digests of images, from their registries into the cluster's lock. No other code writes a digest there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rackwright.atomic_write import write_atomically
from rackwright.bundle.listing import Item, Listing, locked_digests
from rackwright.bundle.outcome import Outcome, judged
from rackwright.bundle.registry import Registries
from rackwright.bundle.web import Wrong
from rackwright.lock.content import Lock
from rackwright.lock.lock_file import lock_text, read_lock
from rackwright.lock.references import BundleError, parse
from rackwright.status import Status

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster


def resolve(
    listing: Listing, registries: Registries, *, update: bool = False
) -> tuple[Listing, tuple[Outcome, ...]]:
    """Each image's digest at its registry. One that is locked already and differs is a failure, unless `update`."""
    outcomes: list[Outcome] = []
    items: list[Item] = []
    for item in listing.items:
        if item.item.kind != "image":
            items.append(item)
            continue
        found: dict[str, str] = {}
        outcome = judged(item, lambda item=item, found=found: _digest(item, registries, found, update))  # type: ignore[misc]
        outcomes.append(outcome)
        items.append(replace(item, digest=found.get("digest", item.digest)))
    return replace(listing, items=tuple(items)), tuple(outcomes)


def _digest(item: Item, registries: Registries, found: dict[str, str], update: bool) -> str:
    digest = registries.manifest(parse(item.item.name)).digest
    if item.digest is not None and item.digest != digest and not update:
        raise Wrong(f"is {digest} now; {item.digest} is locked. `--update` locks the new one")
    found["digest"] = digest
    return digest


def write_digests(cluster: Cluster, listing: Listing, outcomes: tuple[Outcome, ...]) -> bool:
    """Put what was read into the lock; images that nothing needs leave it. Returns whether the file changed."""
    before = locked_digests(cluster)
    read = {one.item.item.name for one in outcomes if one.status is Status.PASS}
    images = {
        one.item.name: one.digest
        for one in listing.of("image")
        if one.digest is not None and (one.item.name in read or before.get(one.item.name) == one.digest)
    }
    there = cluster.lock_path.exists()
    if not there and cluster.gpu_stack is not None:
        raise BundleError(
            f"{cluster.name} has no lock yet.", hint=f"run: rackwright lock {cluster.path.name}"
        )
    lock = read_lock(cluster) if there else Lock(cluster=cluster.name, tables={})
    if dict(lock.images) == images:
        return False
    text = lock_text(lock.model_copy(update={"images": dict(sorted(images.items()))}), cluster.path.name)
    write_atomically(cluster.lock_path, text, mode=0o644)
    return True
