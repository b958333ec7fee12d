"""Checks the networks that role options name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from rackwright.documents.nearest import suggest
from rackwright.model.cluster import Cluster
from rackwright.model.types import LinkKind


def wrong_kinds(
    cluster: Cluster, names: Sequence[str], kinds: Collection[LinkKind]
) -> Iterator[tuple[str, str, str | None]]:
    """(path, sentence, hint) of each of `networks` that does not exist or has another kind than these."""
    for index, name in enumerate(names):
        network = cluster.networks.get(name)
        if network is None:
            hint = suggest(name, cluster.networks, what="networks")
            yield f"networks[{index}]", f"Network {name} does not exist.", hint
        elif network.kind not in kinds:
            right = " or ".join(f"`kind: {kind.value}`" for kind in kinds)
            yield (
                f"networks[{index}]",
                f"{name} has `kind: {network.kind.value}`, which is not supported here.",
                f"set {right} for the network, or remove it here",
            )
