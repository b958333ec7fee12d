"""Benches that were run, for comparison with the next, and those that are under way."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rackwright.atomic_write import write_atomically
from rackwright.boundary import read_json
from rackwright.errors import StorageError
from rackwright.state_folder import state_folder
from rackwright.storage.report import BenchReport

_OPEN = "open-"


def folder_of(cluster: str) -> Path:
    """Where the results of a cluster lie, one JSON document each, named by UTC time."""
    return state_folder(cluster) / "storage"


def store(report: BenchReport) -> Path:
    """Write the document; StorageError when that cannot be done."""
    path = folder_of(report.cluster) / f"{report.started:%Y%m%dT%H%M%SZ}.json"
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomically(path, json.dumps(report.to_json(), indent=1) + "\n", mode=0o644)
    except OSError as error:
        raise StorageError(f"The result cannot be stored at {path}: {error.strerror}.") from error
    return path


def stored(cluster: str) -> list[dict[str, Any]]:
    """Every stored run of a cluster, the oldest first; an unreadable file is passed over."""
    read = (_read(path) for path in sorted(folder_of(cluster).glob("*.json")))
    return [document for document in read if document]


@contextmanager
def under_way(cluster: str, run: str) -> Iterator[None]:
    """Holds a file locked while a run writes; what a killed run leaves is unlocked, and so is known to be over."""
    path = folder_of(cluster) / f"{_OPEN}{run}"
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError as error:
        raise StorageError(f"The run cannot be recorded at {path}: {error.strerror}.") from error
    try:
        yield
    finally:
        os.close(handle)


def done(cluster: str, run: str) -> None:
    """Forget a run whose folder is gone."""
    (folder_of(cluster) / f"{_OPEN}{run}").unlink(missing_ok=True)


def unfinished(cluster: str) -> list[str]:
    """Runs of this host that are over and whose folders may still be there."""
    found = []
    for path in sorted(folder_of(cluster).glob(f"{_OPEN}*")):
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found.append(path.name.removeprefix(_OPEN))
            finally:
                os.close(handle)
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        document = read_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
