"""Results of runs (burn-ins, storage benches), kept for comparison with the next ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rackwright.atomic_write import write_atomically
from rackwright.boundary import read_json
from rackwright.errors import RackwrightError
from rackwright.state_folder import state_folder


@dataclass(frozen=True)
class ResultStore:
    """The results of one kind, in a folder of each cluster's state folder."""

    kind: str
    """The folder's name."""
    error: type[RackwrightError]
    """What is raised when a result cannot be stored."""

    def folder(self, cluster: str) -> Path:
        """Where the results of a cluster lie, one JSON document each, named by UTC time."""
        return state_folder(cluster) / self.kind

    def add(self, cluster: str, started: datetime, document: dict[str, Any]) -> Path:
        """Write a document; `error` when that cannot be done."""
        path = self.folder(cluster) / f"{started:%Y%m%dT%H%M%SZ}.json"
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            write_atomically(path, json.dumps(document, indent=1) + "\n", mode=0o644)
        except OSError as error:
            raise self.error(f"The result cannot be stored at {path}: {error.strerror}.") from error
        return path

    def all(self, cluster: str) -> list[dict[str, Any]]:
        """Every stored result of a cluster, oldest first; an unreadable file is passed over."""
        read = (_read(path) for path in sorted(self.folder(cluster).glob("*.json")))
        return [document for document in read if document]


def _read(path: Path) -> dict[str, Any]:
    try:
        document = read_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
