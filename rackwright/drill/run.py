"""Makes faults, sees their alerts arrive at the webhook, heals, and sees them resolve."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from rackwright.drill.model import Drill, DrillResult, LabFault, Outcome
from rackwright.drill.notifications import Notifications
from rackwright.errors import LabError, RackwrightError
from rackwright.lab.rack import Rack
from rackwright.model.cluster import Cluster, Node

_POLL_SECONDS = 1.0
Told = Callable[[DrillResult], None]


def run_drills(
    cluster: Cluster,
    rack: Rack,
    notifications: Notifications,
    drills: Sequence[Drill],
    limit_seconds: float,
    told: Told,
) -> tuple[DrillResult, ...]:
    """Each drill's result, in the order of the drills; `told` hears of each as it ends.

    Lanes run side by side, then what needs the rack for itself. limit_seconds: how long an alert may take to fire,
    and again to resolve.
    """
    found: dict[int, DrillResult] = {}

    def lane(numbers: list[int]) -> None:
        for number in numbers:
            found[number] = result = _drill(cluster, rack, notifications, drills[number], limit_seconds)
            told(result)

    lanes: dict[str, list[int]] = {}
    for number, drill in enumerate(drills):
        node = drill.on(cluster)
        lanes.setdefault("" if drill.alone else drill.lane or (node.name if node else "-"), []).append(number)
    alone = lanes.pop("", [])
    with ThreadPoolExecutor(max(1, len(lanes))) as pool:
        for running in [pool.submit(lane, numbers) for numbers in lanes.values()]:
            running.result()
    lane(alone)
    return tuple(found[number] for number in range(len(drills)))


def _drill(
    cluster: Cluster, rack: Rack, notifications: Notifications, drill: Drill, limit: float
) -> DrillResult:
    node = drill.on(cluster)
    if node is None:
        return DrillResult(
            drill.alert, drill.fault, None, Outcome.SKIPPED, detail="no node of the rack can have it"
        )
    labels = {**drill.labels, **({"node": node.name} if drill.names_node else {})}
    before = notifications.count()
    try:
        began = time.monotonic()
        try:
            _make(rack, drill, node)
            fired = _wait(lambda: notifications.seen(drill.alert, labels, "firing", before), began, limit)
        finally:
            healing = time.monotonic()
            _heal(rack, drill, node)
        if fired is None:
            return _result(drill, node, Outcome.NOT_FIRED, detail=f"not within {limit:.0f} s")
        resolved = _wait(lambda: notifications.seen(drill.alert, labels, "resolved", before), healing, limit)
        if resolved is None:
            return _result(drill, node, Outcome.NOT_RESOLVED, fired, detail=f"not within {limit:.0f} s")
        return _result(drill, node, Outcome.PASSED, fired, resolved)
    except (LabError, RackwrightError) as error:
        return _result(drill, node, Outcome.ERROR, detail=str(error))


def _result(
    drill: Drill,
    node: Node,
    outcome: Outcome,
    fired: float | None = None,
    resolved: float | None = None,
    detail: str = "",
) -> DrillResult:
    return DrillResult(drill.alert, drill.fault, node.name, outcome, fired, resolved, detail)


def _make(rack: Rack, drill: Drill, node: Node) -> None:
    if isinstance(drill.act, LabFault):
        rack.fault(node.name, drill.act.kind, *drill.act.args)
    else:
        rack.run(node.name, ["sh", "-c", drill.act.make], timeout=120)


def _heal(rack: Rack, drill: Drill, node: Node) -> None:
    if isinstance(drill.act, LabFault):
        rack.heal(node.name)
    else:
        rack.run(node.name, ["sh", "-c", drill.act.heal], timeout=120)


def _wait(holds: Callable[[], bool], began: float, limit: float) -> float | None:
    """Seconds since `began` until it holds; None where it does not within the limit."""
    while True:
        if holds():
            return round(time.monotonic() - began, 1)
        if time.monotonic() - began > limit:
            return None
        time.sleep(_POLL_SECONDS)
