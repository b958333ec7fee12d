"""Differences between the declared and the actual fabric."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rackwright.status import Status


class Kind(StrEnum):
    """What is wrong with a cable, a port or a device."""

    MISSING = "missing cable"
    EXTRA = "extra cable"
    SWAPPED = "cables swapped"
    WRONG_RAIL = "wrong rail"
    WRONG_LEAF = "wrong leaf"
    WRONG_SPINE = "wrong spine"
    WRONG_PORT = "wrong port"
    OTHER_DEVICE = "another device"
    SPEED = "wrong speed"
    WIDTH = "wrong width"
    DOWN = "port down"
    ABSENT_NODE = "node absent"
    ABSENT_SWITCH = "switch absent"
    FLAPPING = "flapping"
    ERRORS = "high error rate"
    FIRMWARE = "mixed firmware"
    UNREAD = "not read"
    NOT_COMPARED = "not compared"
    """Out of scope, by name."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference for the operator."""

    kind: Kind
    text: str
    """A sentence that names both ends, printable."""
    ends: tuple[str, ...] = ()
    """The ends that it is about, e.g. `gpu017 rail 3`, `leaf2 port 12`; for programs."""
    status: Status = Status.FAIL

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "status": self.status.value,
            "kind": self.kind.value,
            "ends": list(self.ends),
            "text": self.text,
        }
