"""Burn-ins that were run, for comparison with the next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rackwright.atomic_write import write_atomically
from rackwright.boundary import read_json
from rackwright.burnin.report import BurninReport, Previous
from rackwright.errors import BurninError
from rackwright.state_folder import state_folder


def folder_of(cluster: str) -> Path:
    """Where the results of a cluster lie, one JSON document each, named by UTC time."""
    return state_folder(cluster) / "burnin"


def store(report: BurninReport) -> Path:
    """Write the document; BurninError when that cannot be done."""
    path = folder_of(report.cluster) / f"{report.started:%Y%m%dT%H%M%SZ}.json"
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomically(path, json.dumps(report.to_json(), indent=1) + "\n", mode=0o644)
    except OSError as error:
        raise BurninError(f"The burn-in result cannot be stored at {path}: {error.strerror}.") from error
    return path


def previous(
    cluster: str, *, engine: str, nodes: tuple[str, ...], size: int, busbw_gbs: float
) -> Previous | None:
    """The last stored run of the same engine, nodes and size, compared; None if there is none.

    Only runs with a figure count; an unreadable file is passed over.
    """
    wanted = {"engine": engine, "nodes": list(nodes), "size": size}
    for path in sorted(folder_of(cluster).glob("*.json"), reverse=True):
        document = _read(path)
        groups = document.get("groups")
        for group in groups if isinstance(groups, list) else []:
            figure = group.get("busbw_gbs") if isinstance(group, dict) else None
            if not isinstance(figure, int | float):
                continue
            if figure and all(group.get(key) == value for key, value in wanted.items()):
                change = 100 * (busbw_gbs - figure) / figure
                return Previous(str(document.get("started")), float(figure), round(change, 1))
    return None


def stored(cluster: str) -> list[dict[str, Any]]:
    """Every stored run of a cluster, the oldest first; an unreadable file is passed over."""
    read = (_read(path) for path in sorted(folder_of(cluster).glob("*.json")))
    return [document for document in read if document]


def _read(path: Path) -> dict[str, Any]:
    try:
        document = read_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
