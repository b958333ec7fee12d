"""Damage in the node's package database, and what its package tool would do about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyinfra.api.facts import FactBase

from rackwright.facts.question import Question
from rackwright.osfamily.known import os_family


@dataclass
class DatabaseState:
    """Packages by name."""

    read: bool = False
    """Whether the database could be read at all."""
    broken: dict[str, str] = field(default_factory=dict)
    """Those that an interrupted dpkg left half-way, with its status letters."""
    unmet: dict[str, list[str]] = field(default_factory=dict)
    """Installed ones, with the dependencies that are not installed."""
    install: dict[str, str] = field(default_factory=dict)
    """Versions that the repair would install."""
    remove: dict[str, str] = field(default_factory=dict)
    """Versions that the repair would remove."""
    cannot: str | None = None
    """Why the package tool sees no repair."""

    @property
    def whole(self) -> bool:
        return self.read and not self.broken and not self.unmet

    def wrong(self) -> str:
        """What is broken, for a message."""
        parts = []
        if self.broken:
            packages = ", ".join(
                f"{name} ({_STATES.get(state[1:2], state)})" for name, state in self.broken.items()
            )
            parts.append(f"not installed to the end: {packages}")
        if self.unmet:
            packages = ", ".join(f"{name} needs {', '.join(gone)}" for name, gone in self.unmet.items())
            parts.append(f"dependencies that are not installed: {packages}")
        return "; ".join(parts)


_STATES = {
    "H": "half-installed",
    "U": "unpacked, not configured",
    "F": "half-configured",
    "W": "triggers awaited",
    "t": "triggers pending",
    "i": "has to be reinstalled",
}


def state_in_english(letters: str) -> str:
    """Meaning of dpkg's status letters, e.g. `iF` is half-configured."""
    return f"{_STATES.get(letters[1:2], 'unknown state')} ({letters})"


def parse_database(lines: list[str]) -> DatabaseState:
    """Read what the fact's command printed."""
    state = DatabaseState()
    for line in lines:
        words = line.split()
        if words == ["read"]:
            state.read = True
        elif words[:1] == ["broken"] and len(words) == 3:
            state.broken[words[1]] = words[2]
        elif words[:1] == ["unmet"] and len(words) == 3:
            state.unmet.setdefault(words[1], []).append(words[2])
        elif words[:1] == ["Inst"] and len(words) == 3:
            state.install[words[1]] = words[2]
        elif words[:1] == ["Remv"] and len(words) == 3:
            state.remove[words[1]] = words[2]
        elif words[:1] == ["cannot"] and state.cannot is None:
            state.cannot = line.partition(" ")[2].strip()
    return state


class PackageDatabase(FactBase[DatabaseState]):
    """State of the whole package database, in one command; only for families that have a query for it."""

    def command(self, family: str) -> Question:
        query = os_family(family).database_query()
        if query is None:
            raise ValueError(f"the package database of {family} is not read")
        return Question(query, "shell")

    @staticmethod
    def default() -> DatabaseState:
        return DatabaseState()

    def process(self, output: list[str]) -> DatabaseState:
        return parse_database(output)
