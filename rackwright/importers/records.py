"""What every format is read into: one record for each node, texts with the place where each was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rackwright.clusterfile.plaintext_secrets import looks_secret
from rackwright.documents.nearest import short
from rackwright.errors import RackwrightError

Field = Literal[
    "name", "roles", "address", "mac", "serial", "bmc", "rack", "position", "switch", "sku", "os", "domain"
]
Setting = Literal["user", "port", "key", "jump_host", "cluster"]
MAX_BYTES = 64 * 2**20
MAX_NODES = 20_000
_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Cell:
    """One text of the source."""

    text: str
    where: str
    """File and line, cell or object, as messages give it."""


@dataclass
class Record:
    """One node as the source has it; `where` is the place of the whole record."""

    where: str
    cells: dict[Field, Cell] = field(default_factory=dict)
    notes: dict[Field, str] = field(default_factory=dict)
    """Why a field has no cell, where the source has something that cannot be used."""
    settings: dict[Setting, Cell] = field(default_factory=dict)
    """How the node is reached; only what all nodes share can be declared."""
    roles: frozenset[str] | None = None
    """Roles that the format itself knows, e.g. from groups; None: read them from the cell."""
    primary: bool = False
    """It is the only controller of the workload manager."""


@dataclass
class Source:
    """A source that has been read."""

    what: str
    """E.g. `Ansible inventory`."""
    files: list[str] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """What was read and has no place in the cluster file, a line each."""
    mistakes: list[str] = field(default_factory=list)
    strict: bool = False
    """A value that cannot be used is a mistake; else it is left out and listed in `ignored`."""
    settings: dict[Setting, Cell] = field(default_factory=dict)


class ImportMistakes(RackwrightError):  # noqa: N818 - reads as the sentence it is
    """The source cannot be turned into a cluster file; names every mistake at once."""

    def __init__(self, what: str, mistakes: list[str], *, hint: str | None = None) -> None:
        self.mistakes = tuple(mistakes)
        count = f"{len(mistakes)} mistake{'' if len(mistakes) == 1 else 's'}"
        shown = "\n".join(f"  {one}" for one in mistakes[:_SHOWN])
        more = f"\n  and {len(mistakes) - _SHOWN} more" if len(mistakes) > _SHOWN else ""
        super().__init__(f"The {what} has {count}; nothing was written.\n{shown}{more}", hint=hint)


def read_text(path: Path) -> str:
    """The text of a file of the source. Raises RackwrightError where it cannot be read or is not UTF-8."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise RackwrightError(f"{path} cannot be read: {reason}.") from None
    if len(raw) > MAX_BYTES:
        raise RackwrightError(f"{path} is larger than {MAX_BYTES // 2**20} MiB.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise RackwrightError(f"{path}:{line} is not UTF-8.", hint="save the file as UTF-8") from None


def counted(number: int, what: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def quoted(text: str) -> str:
    """A text of the source as messages and comments show it: one printable line, cut to 60 characters.

    What looks like a secret is not shown.
    """
    return "`(hidden)`" if looks_secret(text) else f"`{short(text)}`"
