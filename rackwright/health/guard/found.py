"""The findings of a pass that concern the scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from rackwright.health.judge import all_checks
from rackwright.health.verdict import Action, HealthResult
from rackwright.status import Status
from rackwright.workload.states import HEALTH_PREFIX

REASON_MAX_CHARACTERS = 200
_ACTIONS = {check.id: check.action for check in all_checks()}


class Outcome(Enum):
    """The outcome of a pass."""

    CLEAN = "clean"
    UNKNOWN = "unknown"
    BAD = "bad"


@dataclass(frozen=True)
class Found:
    """The part of a verdict that concerns the scheduler."""

    outcome: Outcome
    results: tuple[HealthResult, ...] = ()
    """The results that decide: failures, else unknowns."""

    @property
    def action(self) -> Action:
        """The hardest action of any result."""
        return max((one.action for one in self.results), key=lambda one: one.rank, default=Action.NONE)

    @property
    def checks(self) -> tuple[str, ...]:
        """The deciding checks, each once, hardest action first."""
        return tuple(dict.fromkeys(one.check for one in self.results)) or ("nothing",)

    @property
    def reason(self) -> str:
        """For the scheduler: `rackwright-health: gpu-count FAIL reboot: nvidia-smi lists 7 of 8 ...`."""
        status = "FAIL" if self.outcome is Outcome.BAD else "UNKNOWN"
        return printable(f"{HEALTH_PREFIX}{self.listed} {status} {self.action.value}: {self.evidence}")

    @property
    def listed(self) -> str:
        """The names of the checks, as many as fit on a line."""
        checks = ",".join(self.checks)
        return checks if len(checks) <= 80 else checks[:80].rpartition(",")[0] + ",..."

    @property
    def evidence(self) -> str:
        """The evidence of the first result."""
        return self.results[0].evidence if self.results else "no check ran"


def printable(text: str) -> str:
    """One short line that a workload manager's tools can print without losing their columns."""
    line = " ".join(text.split()).replace("|", "/").replace('"', "").replace("'", "").replace("\\", "/")
    return "".join(char for char in line if char.isprintable() and ord(char) < 128)[:REASON_MAX_CHARACTERS]


def found_in(results: Sequence[HealthResult]) -> Found:
    """What the results mean for jobs; checks that never drain are ignored."""
    bad = [one for one in results if one.status is Status.FAIL and one.action.rank >= Action.DRAIN.rank]
    if bad:
        ranked = sorted(bad, key=lambda one: -one.action.rank)
        return Found(Outcome.BAD, tuple(ranked))
    unknown = [one for one in results if one.status is Status.UNKNOWN and may_drain(one)]
    if unknown or not results:
        return Found(Outcome.UNKNOWN, tuple(unknown))
    return Found(Outcome.CLEAN)


def may_drain(result: HealthResult) -> bool:
    """Whether a failure of this check would take the node out of service; True for an unknown check."""
    return _ACTIONS.get(result.check, Action.DRAIN).rank >= Action.DRAIN.rank
