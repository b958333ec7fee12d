"""One node as it is now, and the whole cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from rackwright.live.facts import Absent, Fact, fact_json
from rackwright.live.findings import FiringAlert, LastDrift, LastHealth, Level, Reason, Source
from rackwright.live.judge import reasons_of
from rackwright.workload.states import NodeState


@dataclass(frozen=True)
class LiveNode:
    """What is known of one node."""

    name: str
    scheduler: Fact[NodeState]
    health: Fact[LastHealth]
    drift: Fact[LastDrift]
    alerts: Fact[tuple[FiringAlert, ...]]

    @property
    def facts(self) -> dict[Source, Fact[Any]]:
        """All four."""
        return {
            Source.SCHEDULER: self.scheduler,
            Source.HEALTH: self.health,
            Source.DRIFT: self.drift,
            Source.ALERTS: self.alerts,
        }

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """Everything that keeps it from being good, worst first."""
        return reasons_of(self.scheduler, self.health, self.drift, self.alerts)

    @property
    def level(self) -> Level:
        """The worst reason's; BUSY or GOOD without any."""
        if self.reasons:
            return self.reasons[0].level
        state = self.scheduler
        return Level.BUSY if isinstance(state, NodeState) and state.busy else Level.GOOD

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "node": self.name,
            "level": self.level.value,
            "reasons": [asdict(one) for one in self.reasons],
            "scheduler": fact_json(self.scheduler, _state_json),
            "health": fact_json(self.health, asdict),
            "drift": fact_json(self.drift, asdict),
            "alerts": fact_json(self.alerts, lambda alerts: [_alert_json(one) for one in alerts]),
        }


@dataclass(frozen=True)
class Live:
    """Every declared node, in file order, at one time."""

    cluster: str
    at: float
    """Seconds since the epoch, when the asking began."""
    seconds: float
    """How long it took."""
    nodes: Mapping[str, LiveNode]
    alerts: tuple[FiringAlert, ...] = ()
    """Those that name no declared node: of racks, leaves, services, the cluster."""

    @property
    def counts(self) -> dict[Level, int]:
        """Nodes of each level, all seven always present."""
        counted = Counter(node.level for node in self.nodes.values())
        return {level: counted[level] for level in Level}

    @property
    def not_asked(self) -> dict[Source, str]:
        """Sources without a fact about any node, since none is declared or installed, and why."""
        found = {}
        for source in Source:
            facts = [node.facts[source] for node in self.nodes.values()]
            absent = [fact.reason for fact in facts if isinstance(fact, Absent)]
            if absent and len(absent) == len(facts):
                found[source] = max(set(absent), key=absent.count)
        return found

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "version": 1,
            "cluster": self.cluster,
            "at": round(self.at, 3),
            "seconds": round(self.seconds, 3),
            "counts": {level.value: count for level, count in self.counts.items()},
            "not_asked": {source.value: why for source, why in self.not_asked.items()},
            "alerts": [_alert_json(one) for one in self.alerts],
            "nodes": [node.to_json() for node in self.nodes.values()],
        }


def _state_json(state: NodeState) -> dict[str, Any]:
    return {
        "states": sorted(state.words),
        "in_service": state.in_service,
        "busy": state.busy,
        "reason": state.reason,
        "by": state.by,
        "drained_by": state.drained_by.value if state.drained_by is not None else None,
    }


def _alert_json(alert: FiringAlert) -> dict[str, Any]:
    return {"name": alert.name, "severity": alert.severity, "labels": dict(alert.labels)}
