"""What keeps a node from being good, from all that is known of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.alerts.rule import Severity
from rackwright.drift.states import State
from rackwright.health.verdict import Action
from rackwright.live.facts import Absent, Fact, Unknown
from rackwright.live.findings import FiringAlert, LastDrift, LastHealth, Level, Reason, Source
from rackwright.status import Status
from rackwright.workload.states import NodeState

_ENDANGERS_JOBS = {action.value for action in Action if action.rank >= Action.DRAIN.rank}
_DRIFT = {State.DRIFTED: Level.WARNING, State.UNREACHABLE: Level.UNKNOWN, State.UNKNOWN: Level.UNKNOWN}
_QUIET = frozenset({Severity.INFO.value, "none"})
"""Alerts that ask for nothing."""


def reasons_of(
    scheduler: Fact[NodeState],
    health: Fact[LastHealth],
    drift: Fact[LastDrift],
    alerts: Fact[tuple[FiringAlert, ...]],
) -> tuple[Reason, ...]:
    """Worst first; empty means: everything that there is to know is known, and good."""
    facts = {
        Source.SCHEDULER: scheduler,
        Source.HEALTH: health,
        Source.DRIFT: drift,
        Source.ALERTS: alerts,
    }
    found = [
        Reason(Level.UNKNOWN, source, fact.reason)
        for source, fact in facts.items()
        if isinstance(fact, Unknown)
    ]
    if all(isinstance(fact, Absent) for fact in facts.values()):
        found.append(Reason(Level.UNKNOWN, Source.SCHEDULER, "the cluster declares nothing that monitors it"))
    if isinstance(scheduler, NodeState):
        found += _of_scheduler(scheduler)
    if isinstance(health, LastHealth):
        found += _of_health(health)
    if isinstance(drift, LastDrift) and drift.state in _DRIFT:
        found.append(Reason(_DRIFT[drift.state], Source.DRIFT, _drift_text(drift)))
    if isinstance(alerts, tuple):
        found += [
            Reason(_level_of(one.severity), Source.ALERTS, one.text)
            for one in alerts
            if one.severity not in _QUIET
        ]
    return tuple(sorted(found, key=lambda one: one.level.rank))


def _of_scheduler(state: NodeState) -> Iterator[Reason]:
    words = "+".join(sorted(state.words))
    said = f"{words}: {state.reason or 'no reason given'}{f' [{state.by}]' if state.by else ''}"
    if state.down:
        yield Reason(Level.DOWN, Source.SCHEDULER, said)
    elif state.drained:
        yield Reason(Level.DRAINED, Source.SCHEDULER, said)
    elif "UNKNOWN" in state.words:
        yield Reason(Level.UNKNOWN, Source.SCHEDULER, said)


def _of_health(last: LastHealth) -> Iterator[Reason]:
    if last.alert is not None:
        yield Reason(Level.FAILING, Source.HEALTH, f"asks for a person: {last.alert}")
    for one in last.failures:
        if one.status == Status.UNKNOWN:
            level = Level.UNKNOWN
        else:
            level = Level.FAILING if one.action in _ENDANGERS_JOBS else Level.WARNING
        yield Reason(level, Source.HEALTH, f"{one.check} {one.status}: {one.evidence}")


def _level_of(severity: str) -> Level:
    return Level.FAILING if severity == Severity.CRITICAL else Level.WARNING


def _drift_text(drift: LastDrift) -> str:
    how = "the scheduled check" if drift.scheduled else "`rackwright drift`"
    return f"{drift.state.value} {age_text(drift.age_seconds)} ago, by {how}"


def age_text(seconds: float) -> str:
    """In the largest unit that fits, e.g. `3 h`."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
