"""A command, its options, its arguments and the commands below it, as plain data that JSON can keep."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Self


@dataclass(frozen=True)
class Argument:
    """A value by its position."""

    takes: str
    """Kind of value: a key of `values.KINDS`, FILE, DIR or PATH; another one completes to nothing but `words`."""
    words: tuple[str, ...] = ()
    """The values that are known without a cluster file."""
    many: bool = False
    default: str | None = None


@dataclass(frozen=True)
class Option:
    """An option with its value, or a flag."""

    names: tuple[str, ...]
    help: str = ""
    value: Argument | None = None
    """None: a flag."""


@dataclass(frozen=True)
class Command:
    """One command; a group has `commands` and no arguments."""

    help: str = ""
    options: tuple[Option, ...] = ()
    arguments: tuple[Argument, ...] = ()
    commands: dict[str, Command] = field(default_factory=dict)
    default: str | None = None
    """The command of a group that runs where the first word names none."""

    def option(self, name: str) -> Option | None:
        """The option with this name, e.g. `--limit`."""
        return next((one for one in self.options if name in one.names), None)

    def to_json(self) -> dict[str, Any]:
        """For the cache."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Back from the cache; TypeError or KeyError where another version wrote it."""
        return cls(
            document["help"],
            tuple(
                Option(tuple(one["names"]), one["help"], one["value"] and _argument(one["value"]))
                for one in document["options"]
            ),
            tuple(map(_argument, document["arguments"])),
            {name: cls.from_json(one) for name, one in document["commands"].items()},
            document["default"],
        )


def _argument(document: dict[str, Any]) -> Argument:
    return Argument(**{**document, "words": tuple(document["words"])})
