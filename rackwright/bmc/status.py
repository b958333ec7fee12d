"""The state of nodes from their BMCs: failed parts, nearly full logs, and mismatched machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rackwright.bmc.fleet import ask_all
from rackwright.bmc.interface import BmcClient, BmcHealth, BmcIdentity, Condition, LogEntry, Part, Power
from rackwright.bmc.target import NoAnswer
from rackwright.errors import BmcError, ExitCode
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.status import Status

_LOG_READ = 50
_LOG_NEARLY_FULL = 90
_BY_CONDITION = {Condition.CRITICAL: Status.FAIL, Condition.WARNING: Status.WARN}
_WORST_FIRST = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS, Status.OUT_OF_SCOPE)


@dataclass(frozen=True)
class Reading:
    """One BMC's report."""

    power: Power
    identity: BmcIdentity
    health: BmcHealth
    last_critical: LogEntry | None
    """The newest critical entry among the last entries of the event log."""


@dataclass(frozen=True)
class Finding:
    """One deviation."""

    status: Status
    text: str


@dataclass(frozen=True)
class NodeStatus:
    """One node."""

    node: str
    reading: Reading | None
    findings: tuple[Finding, ...]
    hint: str | None = None

    @property
    def status(self) -> Status:
        """The worst of its findings; PASS without any."""
        return min((one.status for one in self.findings), key=_WORST_FIRST.index, default=Status.PASS)

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        found: dict[str, Any] = {"node": self.node, "status": str(self.status)}
        found["findings"] = [{"status": str(one.status), "text": one.text} for one in self.findings]
        if self.reading is not None:
            found |= _reading_json(self.reading)
        return found


@dataclass(frozen=True)
class FleetStatus:
    """All nodes that were asked."""

    cluster: str
    nodes: tuple[NodeStatus, ...]

    @property
    def exit_code(self) -> ExitCode:
        """3 if something failed, else 4 if something is UNKNOWN."""
        there = {one.status for one in self.nodes}
        if Status.FAIL in there:
            return ExitCode.CHECK_FAILED
        return ExitCode.UNKNOWN if Status.UNKNOWN in there else ExitCode.CLEAN

    def to_json(self) -> dict[str, Any]:
        """JSON form."""
        return {"version": 1, "cluster": self.cluster, "nodes": [one.to_json() for one in self.nodes]}


def read_fleet(cluster: Cluster, nodes: Sequence[Node]) -> FleetStatus:
    """Query every BMC; a node without one is out of scope."""
    answers = ask_all(cluster, nodes, read)
    found = [status_of(node, answers.get(node.name)) for node in nodes]
    return FleetStatus(cluster.name, tuple(_with_twins(one, found) for one in found))


def read(client: BmcClient) -> Reading:
    """Query one BMC."""
    power, identity, health = client.power(), client.identity(), client.health()
    log: list[LogEntry] = []
    try:
        log = client.event_log(_LOG_READ)
    except NoAnswer:
        raise
    except BmcError:  # no readable event log; everything else is known
        health = replace(health, unread=(*health.unread, "its event log"))
    critical = [one for one in log if one.severity is Condition.CRITICAL]
    return Reading(power, identity, health, critical[0] if critical else None)


def status_of(node: Node, answer: Reading | BmcError | None) -> NodeStatus:
    """Judges one node by its BMC's answer; None: it has no BMC."""
    if answer is None:
        return NodeStatus(node.name, None, (Finding(Status.OUT_OF_SCOPE, "no `bmc` is declared"),))
    if isinstance(answer, BmcError):
        return NodeStatus(node.name, None, (Finding(Status.UNKNOWN, answer.message),), answer.hint)
    return NodeStatus(node.name, answer, (*_other_machine(node, answer), *_judged(answer)))


def _judged(reading: Reading) -> Iterator[Finding]:
    health = reading.health
    broken = [one for one in health.parts if one.state in _BY_CONDITION]
    for part in broken:
        if part in health.fans and reading.power is Power.OFF:  # a stopped fan may be fine
            yield Finding(Status.WARN, f"{_described(part)} is {part.state} while the node is off")
        else:
            yield Finding(_BY_CONDITION[part.state], f"{_described(part)} is {part.state}")
    if health.overall in _BY_CONDITION and _BY_CONDITION[health.overall] not in {
        _BY_CONDITION[one.state] for one in broken
    }:
        yield Finding(_BY_CONDITION[health.overall], f"the BMC reports the machine as {health.overall}")
    if health.overall is Condition.UNKNOWN and not health.parts:
        yield Finding(Status.UNKNOWN, "the BMC reports no health")
    if reading.power is Power.UNKNOWN:
        yield Finding(Status.UNKNOWN, "the BMC does not report the power state")
    for path in health.unread:
        yield Finding(Status.UNKNOWN, f"the BMC failed to read {path}")
    if health.sel_full is not None and health.sel_full >= _LOG_NEARLY_FULL and not health.sel_wraps:
        yield Finding(Status.WARN, f"the event log is {health.sel_full} % full; a full log drops new entries")


def _with_twins(one: NodeStatus, found: Sequence[NodeStatus]) -> NodeStatus:
    """Adds a finding if BMCs of other nodes report the same serial: one machine answers at both addresses."""
    serial = one.reading.identity.serial if one.reading is not None else None
    twins = [
        other.node
        for other in found
        if other.node != one.node and other.reading is not None and other.reading.identity.serial == serial
    ]
    if serial is None or not twins:
        return one
    twin = Finding(
        Status.FAIL,
        f"serial {serial} is reported for {fold([one.node, *twins])}: one machine, several BMC addresses",
    )
    return replace(one, findings=(twin, *one.findings))


def _other_machine(node: Node, reading: Reading) -> Iterator[Finding]:
    """Whether the BMC belongs to another machine, e.g. because two addresses are swapped."""
    serial, macs = reading.identity.serial, reading.identity.macs
    if node.serial is not None and serial is not None and serial != node.serial:
        yield Finding(Status.FAIL, f"the machine's serial is {serial}, but {node.serial} is declared")
    if node.mac is not None and macs and node.mac.lower() not in macs:
        yield Finding(Status.WARN, f"the declared MAC {node.mac} is not one of its ports: {', '.join(macs)}")


def _described(part: Part) -> str:
    value = "" if part.value is None else f" ({part.value:g} {part.unit})"
    return f"{part.name}{value}"


def _reading_json(reading: Reading) -> dict[str, Any]:
    health, identity = reading.health, reading.identity
    return {
        "power": reading.power.value,
        "health": health.overall.value,
        "watts": health.power_watts,
        "sel_full_percent": health.sel_full,
        "identity": {
            **{name: getattr(identity, name) for name in ("maker", "model", "serial", "uuid")},
            "macs": list(identity.macs),
            "bios": identity.bios,
            "bmc_firmware": identity.bmc_firmware,
        },
        "power_supplies": [part_json(one) for one in health.power_supplies],
        "fans": [part_json(one) for one in health.fans],
        "temperatures": [part_json(one) for one in health.temperatures],
        "last_critical": None if reading.last_critical is None else entry_json(reading.last_critical),
    }


def part_json(part: Part) -> dict[str, Any]:
    """JSON form of a part."""
    return {"name": part.name, "state": part.state.value, "value": part.value, "unit": part.unit}


def entry_json(entry: LogEntry) -> dict[str, Any]:
    """JSON form of an event log entry."""
    when = None if entry.when is None else entry.when.isoformat()
    return {
        "when": when,
        "severity": entry.severity.value,
        "message": entry.message,
        "sensor": entry.sensor,
    }
