"""Creates faults, waits for their alerts at the webhook, heals, and waits for the alerts to resolve."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from threading import Event

from rackwright.drill.model import Drill, DrillResult, LabFault, Outcome
from rackwright.drill.notifications import Notifications
from rackwright.errors import LabError, RackwrightError
from rackwright.lab.rack import Rack
from rackwright.model.cluster import Cluster, Node

_POLL_SECONDS = 1.0
_SHELL_SECONDS = 120.0
Report = Callable[[DrillResult], None]


def run_drills(
    cluster: Cluster,
    rack: Rack,
    notifications: Notifications,
    drills: Sequence[Drill],
    limit_seconds: float,
    report: Report,
) -> tuple[DrillResult, ...]:
    """Each drill's result, in the order of the drills; `report` is called as each one ends.

    Lanes run side by side, then what needs the rack for itself. limit_seconds: how long an alert may take to fire,
    and again to resolve. What is broken when an error or Ctrl-C comes is healed, and nothing further is broken.
    """
    found: dict[int, DrillResult] = {}
    stop = Event()

    def lane(numbers: list[int]) -> None:
        for number in numbers:
            if stop.is_set():
                return
            found[number] = result = _drill(cluster, rack, notifications, drills[number], limit_seconds)
            report(result)

    lanes: dict[str, list[int]] = {}
    for number, drill in enumerate(drills):
        node = drill.on(cluster)
        lanes.setdefault("" if drill.alone else drill.lane or (node.name if node else "-"), []).append(number)
    alone = lanes.pop("", [])
    with ThreadPoolExecutor(max(1, len(lanes))) as pool:
        try:
            for ended in as_completed([pool.submit(lane, numbers) for numbers in lanes.values()]):
                ended.result()
            pool.submit(lane, alone).result()  # not in this thread, where Ctrl-C would end its healing too
        except BaseException:
            stop.set()
            raise
    return tuple(found[number] for number in range(len(drills)))


def _drill(
    cluster: Cluster, rack: Rack, notifications: Notifications, drill: Drill, limit: float
) -> DrillResult:
    nodes = _broken(cluster, drill)
    if not nodes:
        return DrillResult(
            drill.alert, drill.fault, None, Outcome.SKIPPED, detail="no node of the rack supports this fault"
        )
    labels = {**drill.labels, **({"node": nodes[0].name} if drill.names_node else {})}
    try:
        if (why := _lacks(rack, drill, nodes)) is not None:
            return _result(drill, nodes[0], Outcome.SKIPPED, detail=why)
        # An earlier fault may have set it off too, and an alert that fires already is not sent again.
        if _wait(lambda: not notifications.firing(drill.alert, labels), time.monotonic(), limit) is None:
            return _result(drill, nodes[0], Outcome.ERROR, detail="the alert already fires without the fault")
        return _watched(rack, notifications, drill, nodes, labels, limit)
    except (LabError, RackwrightError) as error:
        return _result(drill, nodes[0], Outcome.ERROR, detail=str(error))


def _broken(cluster: Cluster, drill: Drill) -> list[Node]:
    """The nodes that are broken; none where the rack lacks one of them."""
    chosen = [one(cluster) for one in (drill.on, drill.also) if one is not None]
    return [node for node in chosen if node is not None] if None not in chosen else []


def _lacks(rack: Rack, drill: Drill, nodes: Sequence[Node]) -> str | None:
    """What the drill needs and a node lacks."""
    need = drill.needs
    if need is None:
        return None
    for node in nodes:
        if not rack.run(node.name, ["sh", "-c", f"[ ! -e {need.path} ] || echo there"]).strip():
            return f"{need.missing}: {need.command}"
    return None


def _watched(
    rack: Rack,
    notifications: Notifications,
    drill: Drill,
    nodes: Sequence[Node],
    labels: Mapping[str, str],
    limit: float,
) -> DrillResult:
    """The fault, its alert, and the end of both."""
    node, before, began = nodes[0], notifications.count(), time.monotonic()

    try:
        for one in nodes:
            _make(rack, drill, one)
        fired = _wait(lambda: notifications.seen(drill.alert, labels, "firing", before), began, limit)
    finally:
        healing = time.monotonic()
        _heal(rack, drill, nodes)
    if fired is None:
        return _result(drill, node, Outcome.NOT_FIRED, detail=f"not within {limit:.0f} s")
    # one that comes and goes while the fault lasts has to end after it
    resolved = _wait(
        lambda: (
            notifications.seen(drill.alert, labels, "resolved", before)
            and not notifications.firing(drill.alert, labels)
        ),
        healing,
        limit,
    )
    if resolved is None:
        return _result(drill, node, Outcome.NOT_RESOLVED, fired, detail=f"not within {limit:.0f} s")
    return _result(drill, node, Outcome.PASSED, fired, resolved)


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
        _shell(rack, node, drill.act.then)
    else:
        _shell(rack, node, drill.act.make)


def _heal(rack: Rack, drill: Drill, nodes: Sequence[Node]) -> None:
    """Every step on every node, also where one fails; the first error is raised at the end."""
    errors = []
    for node in nodes:
        for step in _healing(rack, drill, node):
            try:
                step()
            except Exception as error:  # noqa: BLE001 - raised below
                errors.append(error)
    if errors:
        raise errors[0]


def _healing(rack: Rack, drill: Drill, node: Node) -> Iterator[Callable[[], None]]:
    if isinstance(drill.act, LabFault):
        yield partial(rack.heal, node.name)
        yield partial(_shell, rack, node, drill.act.then)
    else:
        yield partial(_shell, rack, node, drill.act.heal)


def _shell(rack: Rack, node: Node, command: str) -> None:
    if command:
        rack.run(node.name, ["sh", "-c", command], timeout=_SHELL_SECONDS)


def _wait(holds: Callable[[], bool], began: float, limit: float) -> float | None:
    """Seconds since `began` until it holds; None where it does not within the limit."""
    while True:
        if holds():
            return round(time.monotonic() - began, 1)
        if time.monotonic() - began > limit:
            return None
        time.sleep(_POLL_SECONDS)
