"""The faults that a node has now: written before they are done, so that a half-done one is healed as well."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rackwright.lab import names, state


def recorded(rack: str, name: str) -> dict[str, list[str]]:
    """The faults a node has now: kind -> its arguments."""
    found: dict[str, list[str]] | None = state.read_json(_path(rack, name))
    return found or {}


def save(rack: str, name: str, faults: Mapping[str, list[str]]) -> None:
    """Remember the faults of a node."""
    state.write_json(_path(rack, name), dict(faults))


def forget(rack: str, name: str) -> None:
    """Forget every fault of a node."""
    _path(rack, name).unlink(missing_ok=True)


def _path(rack: str, name: str) -> Path:
    return names.node_state(rack, name) / "faults.json"
