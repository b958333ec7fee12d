"""What a stage of a burn-in found."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.boundary import printable
from rackwright.status import Status

TEXT_MAX_CHARACTERS = 1000


@dataclass(frozen=True)
class Finding:
    """A result worth naming: FAIL and UNKNOWN keep a run from being a pass, OUT OF SCOPE names what cannot apply."""

    status: Status
    text: str
    """Printable, one line: it quotes what nodes printed."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", printable(self.text, TEXT_MAX_CHARACTERS))
