"""What the BMC reports about a node that does not answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from rackwright.bmc.interface import BmcClient, BmcHealth, Condition, LogEntry, Power
from rackwright.bmc.open import Open
from rackwright.errors import RackwrightError
from rackwright.health.bmc_view import critical_entries, judge_bmc
from rackwright.health.bmc_words import NAMES
from rackwright.health.declare import options_of
from rackwright.health.verdict import HealthResult
from rackwright.model.cluster import Node
from rackwright.status import Status
from rackwright.why.parts import Part, not_known

EVENTS_READ = 100
EVENTS_SHOWN = 4
OBJECTS = (Status.FAIL, Status.WARN)
T = TypeVar("T")


def bmc_part(node: Node, open_one: Callable[[], Open], now: datetime | None = None) -> Part | None:
    """Power, failed parts and critical events; None where no BMC is declared.

    + open_one: makes what opens BMCs, which may fail: their passwords are in the secrets store
    """
    if node.bmc is None:
        return None
    try:
        client = open_one()(node)
    except RackwrightError as error:
        return not_known("bmc", f"its BMC was not queried: {error.message}")
    try:
        return _asked(node, client, now or datetime.now(UTC))
    finally:
        client.close()


def _asked(node: Node, client: BmcClient, now: datetime) -> Part:
    try:
        power = client.power()
    except RackwrightError as error:  # the other queries would time out as well
        return not_known("bmc", f"no answer from its BMC: {error.message}")
    unread: list[str] = []
    health = _read(client.health, unread)
    log = _read(lambda: client.event_log(EVENTS_READ), unread)
    results = _judged(node, power, health, log, now)
    events = critical_entries(log or ())
    lines = [
        f"power is {power.value}",
        *(f"{one.check} {one.status.value}: {one.evidence}" for one in results),
        *(_line(entry, kind) for entry, kind in events[:EVENTS_SHOWN]),
    ]
    if len(lines) == 1 and not unread:
        lines.append("no failed part, and no critical event in its log")
    data = {
        "power": power.value,
        "results": [one.to_json() for one in results],
        "events": [
            {"at": entry.when.timestamp() if entry.when else None, "kind": kind, "message": entry.message}
            for entry, kind in events
        ],
    }
    return Part("bmc", tuple(lines), power is Power.UNKNOWN, data, unread=tuple(unread))


def _judged(
    node: Node, power: Power, health: BmcHealth | None, log: Sequence[LogEntry] | None, now: datetime
) -> list[HealthResult]:
    """The problems in what was read; hardest action first."""
    if health is None and log is None:
        return []
    results = judge_bmc(
        node.name,
        health or BmcHealth(Condition.UNKNOWN),
        log or (),
        now=now,
        power=power,
        limits=options_of(node).limits,
    )
    return sorted((one for one in results if one.status in OBJECTS), key=lambda one: -one.action.rank)


def _read(ask: Callable[[], T], unread: list[str]) -> T | None:
    try:
        return ask()
    except RackwrightError as error:
        unread.append(error.message)
        return None


def _line(entry: LogEntry, kind: str) -> str:
    when = entry.when.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if entry.when else "at an unknown time"
    return f"logged {when}: {NAMES[kind]}: {entry.message}"
