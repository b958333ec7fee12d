"""Where the log lines of all nodes are stored, found with `node.offers(KeepsLogs)`; see rackwright.model.services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster


class LogStore(NamedTuple):
    """A store with the log lines of all nodes, and how to read it."""

    kind: Literal["journal", "loki", "search"]
    """Name of the reader in rackwright.logs."""
    server: str
    """The node on which the reader runs."""
    settings: Mapping[str, Any]
    """Reader settings as JSON: folders, URLs, certificate paths. No secrets."""
    retention_days: int
    audit_retention_days: int


class KeepsLogs:
    """Options of the role that collects the log lines of all nodes in one store."""

    def log_store(self, cluster: Cluster) -> LogStore:
        """The log store."""
        raise NotImplementedError
