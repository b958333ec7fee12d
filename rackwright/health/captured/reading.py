"""What a reader of captures returns, and the context it may get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Sections = dict[str, "dict[str, Any]"]
"""Data of the probe document's sections. A value the capture cannot contain is left out, not None:
None is what a tool prints for a value that it does not have."""


@dataclass(frozen=True)
class Reading:
    """The sections of one capture."""

    sections: Sections
    leaves_out: tuple[str, ...] = ()
    """Checks that need more than an excerpt, by id."""
    taken_at: float = 0.0


@dataclass(frozen=True)
class Context:
    """What is known about the node besides the capture."""

    gpus: tuple[str, ...] = ()
    """PCI addresses in lower case."""
    nics: tuple[str, ...] = ()
    """PCI addresses of NICs of the fabric."""
    drives: tuple[str, ...] = ()
    """Block devices that carry declared filesystems."""
