"""Judges what a BMC reports over the network, with the thresholds of the checks that read it on the node.

Pure: gives the same results as the node's own checks, also for a node that is off or out of reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rackwright.bmc.interface import BmcHealth, Condition, LogEntry, Part, Power
from rackwright.boundary import printable
from rackwright.health import bmc_words
from rackwright.health.bmc_words import Event, critical
from rackwright.health.checks.bmc import AHEAD_SECONDS, HOUR
from rackwright.health.judge import EVIDENCE_MAX_CHARACTERS
from rackwright.health.limits import LIMITS
from rackwright.health.registry import CHECKS
from rackwright.health.verdict import Action, Finding, HealthResult, aside, fail, good, unknown, warn
from rackwright.status import Status

LOG_CHECKS = {
    "bmc-log-memory": bmc_words.MEMORY,
    "bmc-log-processor": bmc_words.PROCESSOR,
    "bmc-log-pcie": bmc_words.PCIE,
    "bmc-log-power": bmc_words.POWER,
    "bmc-log-drive": bmc_words.DRIVE,
}
OBJECTS = (Status.FAIL, Status.UNKNOWN, Status.WARN)


def judge_bmc(
    node: str,
    health: BmcHealth,
    log: Sequence[LogEntry],
    *,
    now: datetime,
    power: Power = Power.ON,
    limits: Mapping[str, float] | None = None,
) -> tuple[HealthResult, ...]:
    """Every result about one node, by check.

    + log: newest first, as a client returns it
    + power: fans of a node that is off may stand still
    + limits: what the site sets otherwise (`HealthOptions.limits`)
    """
    values = {name: one.value for name, one in LIMITS.items()} | dict(limits or {})
    fans = list(_parts(health, health.fans, "fans", values))
    if power is Power.OFF:
        fans = [
            warn(f"{one.evidence}, while the node is off") if one.status is Status.FAIL else one
            for one in fans
        ]
    found: dict[str, list[Finding]] = {
        "bmc-supplies": list(_parts(health, health.power_supplies, "power supplies", values)),
        "bmc-fans": fans,
        "bmc-temperatures": list(_parts(health, health.temperatures, "temperatures", values)),
        "bmc-log-room": [_room(health, values)],
        "bmc-power": [_power(health)],
    }
    events = [_event(one) for one in reversed(log)]
    for check, kind in LOG_CHECKS.items():
        found[check] = list(_events(events, kind, now, values["bmc_event_hours"] * HOUR))
    return tuple(_result(node, check, one) for check, findings in found.items() for one in findings)


def critical_entries(log: Sequence[LogEntry]) -> list[tuple[LogEntry, str]]:
    """Critical events of any age, newest first, each with its kind."""
    kinds = [(one, critical(_event(one).words)) for one in log if one.severity is not Condition.OK]
    return [(entry, kind) for entry, kind in kinds if kind is not None]


def _parts(
    health: BmcHealth, parts: Sequence[Part], what: str, limits: Mapping[str, float]
) -> Iterator[Finding]:
    known = [one for one in parts if one.state not in (Condition.UNKNOWN, Condition.ABSENT)]
    wrong = [one for one in known if one.state is not Condition.OK]
    for one in wrong:
        words = f"{one.name}: {one.state.value}" + (
            f", {one.value:g} {one.unit}" if one.value is not None else ""
        )
        cold = one.unit == "C" and one.value is not None and one.value < limits["bmc_cold_c"]
        margin = bmc_words.is_margin(one.name)
        hard = one.state is Condition.CRITICAL and (margin or not cold)
        yield fail(words) if hard else warn(words)
    if not known and health.unread:
        yield unknown(f"the BMC failed to read {', '.join(health.unread[:3])}")
    elif not known:
        yield aside(f"the BMC reports no state of {what}")
    elif not wrong:
        yield good(f"{len(known)} {what}")


def _room(health: BmcHealth, limits: Mapping[str, float]) -> Finding:
    percent = health.sel_full
    if percent is None:
        return aside("the BMC does not report how large its event log is")
    if health.sel_wraps:
        return good(f"{percent} %; a full log drops its oldest entries")
    if percent >= limits["bmc_log_full_percent"]:
        return fail(f"{percent} % full")
    return warn(f"{percent} % full") if percent >= limits["bmc_log_warn_percent"] else good(f"{percent} %")


def _power(health: BmcHealth) -> Finding:
    if health.power_watts is None:
        return aside("the BMC reports no power draw")
    watts = f"{health.power_watts:g} W"
    return good(watts) if health.power_watts > 0 else warn(watts)


def _event(entry: LogEntry) -> Event:
    words = f"{entry.sensor}: {entry.message}" if entry.sensor else entry.message
    at = entry.when.timestamp() if entry.when is not None else None
    return Event(at, words, asserted=entry.severity is not Condition.OK)


def _events(events: Sequence[Event], kind: str, now: datetime, seconds: float) -> Iterator[Finding]:
    found = [one for one in bmc_words.standing(events) if critical(one.words) == kind]
    at = now.timestamp()
    new = [one for one in found if bmc_words.fresh(one, at, seconds, AHEAD_SECONDS)]
    for one in new[-4:]:
        yield fail(f"{one.words}, {max(0.0, at - (one.at or at)) / HOUR:.1f} h ago")
    if not new:
        yield good(f"none; {len(found)} older" if found else "none")


def _result(node: str, check: str, found: Finding) -> HealthResult:
    one = CHECKS[check]
    action = one.action if found.status is Status.FAIL else Action.NONE
    remedy = one.remedy if found.status in OBJECTS else ""
    evidence = printable(found.evidence, EVIDENCE_MAX_CHARACTERS)
    return HealthResult(node, check, one.claim, one.area, found.status, evidence, action, remedy)
