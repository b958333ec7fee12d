"""What became of each item: of resolving, packing or checking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rackwright.bundle.listing import Item
from rackwright.bundle.web import Unreadable, Wrong
from rackwright.errors import ExitCode
from rackwright.status import Status


@dataclass(frozen=True)
class Outcome:
    """Of one item."""

    item: Item
    status: Status
    evidence: str


def judged(item: Item, act: Callable[[], str]) -> Outcome:
    """PASS with the evidence that `act` returns; FAIL for Wrong, UNKNOWN for what cannot be read."""
    try:
        return Outcome(item, Status.PASS, act())
    except Wrong as error:
        return Outcome(item, Status.FAIL, str(error))
    except (Unreadable, OSError) as error:
        return Outcome(item, Status.UNKNOWN, str(error))


def exit_code(outcomes: tuple[Outcome, ...], unknown: tuple[str, ...]) -> ExitCode:
    """FAIL before UNKNOWN."""
    found = {one.status for one in outcomes}
    if Status.FAIL in found:
        return ExitCode.CHECK_FAILED
    return ExitCode.UNKNOWN if Status.UNKNOWN in found or unknown else ExitCode.CLEAN
