"""What a saved document is to be judged by."""

from __future__ import annotations

import json
from pathlib import Path

from rackwright.catalog.read import catalogue
from rackwright.clusterfile.load import load_cluster
from rackwright.documents.nearest import suggest
from rackwright.errors import RackwrightError
from rackwright.health.declare import expected_of, expected_of_sku
from rackwright.health.expected import Expected


def expected_for(text: str, file: Path | None, sku: str | None) -> Expected:
    """The declaration for a document: a SKU of the catalogue, or the node it names in a cluster file."""
    if file is None:
        if sku is None:
            raise RackwrightError("Say what the document should be.", hint="--sku NAME, or the cluster file")
        found = catalogue().get(sku)
        if found is None:
            raise RackwrightError(
                f"The catalogue has no SKU {sku}.", hint=suggest(sku, catalogue(), what="SKUs")
            )
        return expected_of_sku(found)
    cluster = load_cluster(file)
    name = _node_of(text)
    node = cluster.by_name.get(name)
    if node is None:
        raise RackwrightError(
            f"Cluster {cluster.name} has no node {name}.", hint=suggest(name, cluster.by_name, what="nodes")
        )
    return expected_of(cluster, node)


def _node_of(text: str) -> str:
    try:
        told = json.loads(text)
        name = told["node"]
    except (ValueError, KeyError, TypeError):
        name = None
    if not isinstance(name, str):
        raise RackwrightError(
            "The document does not say which node it is of.", hint="give --sku instead of FILE"
        )
    return name.split(".")[0]
