"""Findings and results of health checks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from rackwright.status import Status


class Action(str, Enum):  # noqa: UP042 - Python 3.9
    """The action that a finding calls for, mildest first."""

    NONE = "none"
    RESTART_JOB = "restart-job"
    DRAIN = "drain"
    RESET_GPU = "reset-gpu"
    REBOOT = "reboot"
    RMA = "rma"

    @property
    def rank(self) -> int:
        """Mildest is 0."""
        return list(Action).index(self)


SEVERITY = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS, Status.DISABLED, Status.OUT_OF_SCOPE)
"""Worst first."""


@dataclass(frozen=True)
class Finding:
    """One finding of a check; `action` and `remedy` override the check's."""

    status: Status
    evidence: str
    action: Action | None = None
    remedy: str | None = None
    place: str = ""
    """The field without a value, if that is why the result is UNKNOWN."""


@dataclass(frozen=True)
class HealthResult:
    """One line of a verdict about one node."""

    node: str
    check: str
    claim: str
    area: str
    status: Status
    evidence: str
    action: Action = Action.NONE
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}  # asdict makes a slow deep copy
        return {**plain, "status": self.status.value, "action": self.action.value}


def fail(evidence: str, action: Action | None = None, remedy: str | None = None) -> Finding:
    """The claim is false."""
    return Finding(Status.FAIL, evidence, action, remedy)


def warn(evidence: str) -> Finding:
    """The claim holds with a reservation."""
    return Finding(Status.WARN, evidence)


def unknown(evidence: str, place: str = "") -> Finding:
    """It is unknown whether the claim holds."""
    return Finding(Status.UNKNOWN, evidence, place=place)


def aside(evidence: str) -> Finding:
    """The claim does not apply to this item."""
    return Finding(Status.OUT_OF_SCOPE, evidence)


def good(evidence: str) -> Finding:
    """The claim holds."""
    return Finding(Status.PASS, evidence)
