"""Stores results of runs (burn-ins, storage benches): all of them, for comparison, or only the latest."""

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
            raise self.error(f"Cannot store the result at {path}: {error.strerror}.") from error
        return path

    def last(self, cluster: str) -> dict[str, Any]:
        """The newest stored result of a cluster that can be read; empty where there is none."""
        paths = sorted(self.folder(cluster).glob("*.json"), reverse=True)
        return next((document for path in paths if (document := _read(path))), {})

    def all(self, cluster: str) -> list[dict[str, Any]]:
        """Every stored result of a cluster, oldest first; an unreadable file is passed over."""
        read = (_read(path) for path in sorted(self.folder(cluster).glob("*.json")))
        return [document for document in read if document]


@dataclass(frozen=True)
class LatestResult:
    """The last result of one kind, which takes the place of the one before."""

    kind: str

    def path(self, cluster: str) -> Path:
        """Its file in the cluster's state folder."""
        return state_folder(cluster) / f"latest-{self.kind}.json"

    def put(self, cluster: str, document: dict[str, Any]) -> str | None:
        """Remember a document; a sentence about why that cannot be done, or None."""
        path = self.path(cluster)
        try:
            write_atomically(path, json.dumps(document) + "\n", mode=0o644)
        except OSError as error:
            return f"cannot write {path}, so the result is not stored: {error.strerror}"
        return None

    def get(self, cluster: str) -> dict[str, Any]:
        """The document; empty where there is none that can be read."""
        return _read(self.path(cluster))


def _read(path: Path) -> dict[str, Any]:
    try:
        document = read_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
