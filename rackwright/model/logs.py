"""Where the lines of all nodes are kept, found with `node.offers(KeepsLogs)`, as in rackwright.model.services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster


class LogStore(NamedTuple):
    """A place with the lines of all nodes, and how it is read."""

    kind: Literal["journal", "loki", "search"]
    """Which of rackwright.logs' readers knows it."""
    server: str
    """The node on which the reader runs."""
    settings: Mapping[str, Any]
    """What the reader has to know, as JSON: folders, URLs, paths of certificates. No secret."""
    retention_days: int
    audit_retention_days: int


class KeepsLogs:
    """Options of the role that brings the lines of all nodes to one place."""

    def log_store(self, cluster: Cluster) -> LogStore:
        """That place."""
        raise NotImplementedError
