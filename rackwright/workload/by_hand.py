"""Drains by an operator: which reasons are written, and which drains an operator may end through rackwright."""

from __future__ import annotations

import re

from rackwright.boundary import printable
from rackwright.errors import WorkloadError
from rackwright.workload.states import HEALTH_PREFIX, ROLLOUT_PREFIX, DrainedBy, NodeState

_REASON = re.compile(r"[A-Za-z0-9][A-Za-z0-9 .,:;@/()+_#=-]{2,119}")
"""What every manager's command line takes as one word in quotes."""


def checked_reason(text: str) -> str:
    """The reason without blanks around it; WorkloadError where it cannot be written, or would be read as another's."""
    reason = text.strip()
    if not _REASON.fullmatch(reason):
        raise WorkloadError(
            f"{printable(reason, 60)!r} is not a reason for a drain: 3 to 120 letters, digits, blanks and .,:;@/()+_#=-",
            hint="e.g. ticket 4711: ECC errors on GPU 3",
        )
    if reason.startswith((ROLLOUT_PREFIX, HEALTH_PREFIX)):
        raise WorkloadError(
            f"A reason that begins with {reason.split()[0]} belongs to rackwright itself.",
            hint="begin with a name or a ticket, e.g. ticket 4711: ECC errors on GPU 3",
        )
    return reason


def refused(node: str, state: NodeState, reason: str, command: str) -> str | None:
    """Why an operator may not end this drain through rackwright; None: it is a person's, and still the one confirmed.

    + reason: the one that the operator saw
    + command: what ends any drain, for those who know better
    """
    if state.in_service:
        return f"{node} is in service."
    if state.drained_by is DrainedBy.HEALTH:
        return f"{node} is drained by its health check, which puts it back once it passes. At your own risk: {command}"
    if state.drained_by is DrainedBy.ROLLOUT:
        return f"{node} is drained by a run of rackwright: rackwright resume {state.run} puts it back."
    if state.drained_by is not DrainedBy.PERSON or state.down:
        return f"{node} is {state.text}, and no person drained it: find out why first. At your own risk: {command}"
    if state.reason != reason:
        return f"{node} is drained for another reason by now: {state.reason}"
    return None
