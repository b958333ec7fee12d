"""The certificate of an erasure: which disk was erased by which method, and how it was verified.

One file per run in the state folder: `install/erased/NODE-RUN.json`. docs/bare-metal.md describes the strength of each
method.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rackwright import __version__
from rackwright.atomic_write import write_atomically
from rackwright.install.erasure import DiskReport, Erasure
from rackwright.install.inventory import Disk, Inventory
from rackwright.install.record import Record, folder

METHODS = frozenset(
    {
        "nvme-format-crypto-erase",
        "nvme-format-user-data-erase",
        "secure-discard",
        "write-zeroes",
        "overwrite",
    }
)
LEVEL = "clear"
"""NIST SP 800-88 level of all methods, and no higher: `purge` needs the drives' Sanitize commands, which are not used."""
ERASED, INCOMPLETE = "erased", "incomplete"


def make(
    erasure: Erasure, found: Inventory, record: Record, reports: Mapping[str, DiskReport]
) -> dict[str, Any]:
    """The certificate; its result is `erased` only if every disk of the machine was erased and verified."""
    disks = [_disk(disk, reports.get(disk.path)) for disk in erasure.disks]
    disks += [
        {**_known(disk), "erased": False, "verified": False, "error": why} for disk, why in erasure.left
    ]
    whole = bool(disks) and all(one["error"] is None for one in disks)
    return {
        "schema": 1,
        "result": ERASED if whole else INCOMPLETE,
        "rackwright": __version__,
        "node": record.node,
        "run": record.run,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "serial": found.dmi.product_serial,
            "uuid": found.dmi.product_uuid,
            "vendor": found.dmi.sys_vendor,
            "product": found.dmi.product_name,
        },
        "disks": disks,
    }


def problems(certificate: Mapping[str, Any]) -> list[str]:
    """A sentence for each disk that was not erased and verified."""
    return [
        f"{one['path']} (serial {one['serial'] or 'unknown'}): {one['error']}"
        for one in certificate["disks"]
        if one["error"] is not None
    ]


def write(state: Path, certificate: Mapping[str, Any]) -> Path:
    """Write a certificate to the journals' folder, synced to disk. Raises OSError."""
    path = _path(state, certificate["node"], certificate["run"])
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_atomically(path, json.dumps(certificate, indent=2) + "\n")
    return path


def find(cluster: str, record: Record) -> tuple[Path, dict[str, Any]] | None:
    """The certificate of a node's last run; None if it wrote none."""
    path = _path(folder(cluster), record.node, record.run)
    try:
        read: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return path, read


def _path(state: Path, node: str, run: str) -> Path:
    return state / "erased" / f"{node}-{run}.json"


def _disk(disk: Disk, report: DiskReport | None) -> dict[str, Any]:
    """One disk: its identity from the inventory, and its result from the agent's report."""
    if report is None:
        return {**_known(disk), "erased": False, "verified": False, "error": "the agent did not report on it"}
    error = report.error
    if error is None and not (report.erased and report.verified and report.method in METHODS):
        error = f"erased: {report.erased}, verified: {report.verified}, by {report.method or 'no method'}"
    return {
        **_known(disk),
        "method": report.method,
        "level": LEVEL if error is None else None,
        "erased": report.erased,
        "verified": report.verified,
        "samples": report.samples,
        "samples_with_data_before": report.held_data,
        "seconds": report.seconds,
        "not_used": list(report.tried),
        "error": error,
    }


def _known(disk: Disk) -> dict[str, Any]:
    known = disk.model_dump(mode="json", include={"path", "serial", "wwn", "model", "size_bytes"})
    return {**known, "held": list(disk.signatures)}
