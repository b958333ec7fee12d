"""What a BMC keeps: boot override, firmware settings, virtual medium, event log. A file, changed under a lock.

The BMCs' server and the commands of `rackwright lab` both switch machines on and off, so neither keeps it in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rackwright.errors import LabError
from rackwright.lab import names, state
from rackwright.lab.spec import RackSpec

LOG_MAX = 256
"""Entries of the event log; a full one keeps the old ones, as most BMCs do."""
FIRMWARE_SETTINGS: dict[str, tuple[str, ...]] = {
    "BootMode": ("Uefi",),
    "NumaNodesPerSocket": ("1", "2", "4"),
    "PowerProfile": ("Balanced", "MaxPerformance", "PowerSaving"),
    "ProcTurbo": ("Enabled", "Disabled"),
    "ProcVirtualization": ("Enabled", "Disabled"),
    "SmtControl": ("Enabled", "Disabled"),
    "SriovGlobalEnable": ("Enabled", "Disabled"),
}
"""BIOS attribute -> its values, the first as delivered. qemu does not act on them."""
_WAIT_SECONDS = 30.0


@dataclass(slots=True)
class Override:
    """What is booted next."""

    target: str = "None"
    enabled: str = "Disabled"
    http_uri: str = ""


@dataclass(slots=True)
class Medium:
    """The image in the virtual CD drive."""

    image: str
    """Its URL, without a password."""
    write_protected: bool
    size: int


@dataclass(slots=True)
class Entry:
    """One line of the event log."""

    number: int
    created: str
    severity: str
    message: str
    sensor: str


@dataclass(slots=True)
class Settings:
    """Everything that one BMC keeps."""

    override: Override = field(default_factory=Override)
    secure_boot: bool = False
    """As the machine was last switched on."""
    secure_boot_wanted: bool = False
    bios: dict[str, str] = field(default_factory=lambda: {k: v[0] for k, v in FIRMWARE_SETTINGS.items()})
    bios_wanted: dict[str, str] = field(default_factory=dict)
    medium: Medium | None = None
    verify_certificate: bool = False
    """Of the servers that images come from. Off as delivered, as on most BMCs."""
    certificates: dict[str, str] = field(default_factory=dict)
    """PEM of those that such a server may be signed with, by their number."""
    next_certificate: int = 1
    indicator: str = "Off"
    power: str = "Off"
    """As last seen: what changed since then goes to the log."""
    broken: list[str] = field(default_factory=list)
    """The parts that the log already calls broken."""
    log: list[Entry] = field(default_factory=list)
    next_entry: int = 1

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Settings:
        """What asdict made."""
        medium = None if data["medium"] is None else Medium(**data["medium"])
        parts = {"override": Override(**data["override"]), "medium": medium}
        return cls(**(data | parts | {"log": [Entry(**entry) for entry in data["log"]]}))

    def note(self, message: str, sensor: str, severity: str = "OK") -> None:
        """One more entry; a full log drops it."""
        if len(self.log) >= LOG_MAX:
            return
        created = datetime.now(UTC).isoformat(timespec="seconds")
        self.log.append(Entry(self.next_entry, created, severity, message, sensor))
        self.next_entry += 1


def deliver(spec: RackSpec, node: str, *, secure_boot: bool) -> None:
    """The settings of a new machine."""
    fresh = Settings(secure_boot=secure_boot, secure_boot_wanted=secure_boot)
    _write(spec.name, node, fresh)


def read(rack: str, node: str) -> Settings:
    """The settings now."""
    data = state.read_json(_path(rack, node))
    try:
        return Settings.from_json(data)
    except (KeyError, TypeError):
        raise LabError(f"{_path(rack, node)} is damaged", hint="rackwright lab down, then up") from None


@contextmanager
def changing(rack: str, node: str) -> Iterator[Settings]:
    """The settings, written back at the end; an error in between keeps the old ones."""
    with state.lock(f"bmc {rack}.{node}", _WAIT_SECONDS):
        settings = read(rack, node)
        yield settings
        _write(rack, node, settings)


def _write(rack: str, node: str, settings: Settings) -> None:
    state.write_text(_path(rack, node), json.dumps(asdict(settings), indent=1) + "\n", 0o600)


def _path(rack: str, node: str) -> Path:
    return names.node_state(rack, node) / "bmc.json"
