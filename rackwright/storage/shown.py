"""Declared filesystems as plain JSON data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rackwright.model.cluster import Cluster
from rackwright.model.storage import Filesystem
from rackwright.storage.plan import out_of_scope, users_of


def show_json(cluster: Cluster, filesystems: Sequence[Filesystem]) -> dict[str, Any]:
    """The versioned document of `rackwright storage show --json`."""
    return {
        "kind": "rackwright.storage.show",
        "version": 1,
        "cluster": cluster.name,
        "filesystems": [
            {
                **one.model_dump(mode="json"),
                "measured_on": [node.name for node in users_of(cluster, one)],
                "not_measured": out_of_scope(cluster, one),
            }
            for one in filesystems
        ],
    }
