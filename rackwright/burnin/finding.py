"""Findings of a burn-in stage."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.boundary import printable
from rackwright.status import Status

TEXT_MAX_CHARACTERS = 1000


@dataclass(frozen=True)
class Finding:
    """A result to report: FAIL and UNKNOWN prevent a pass, OUT OF SCOPE names what does not apply."""

    status: Status
    text: str
    """Printable and on one line, because it quotes output of nodes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", printable(self.text, TEXT_MAX_CHARACTERS))
