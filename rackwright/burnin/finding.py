"""What a stage of a burn-in found."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.status import Status


@dataclass(frozen=True)
class Finding:
    """A result worth naming: FAIL and UNKNOWN keep a run from being a pass, OUT OF SCOPE names what cannot apply."""

    status: Status
    text: str
