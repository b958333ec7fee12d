"""The next step, from everything that is known: one pure function, most urgent rule first."""

from __future__ import annotations

from rackwright.firmware.names import PREFIX as FIRMWARE
from rackwright.health.guard.found import Outcome, found_in
from rackwright.health.run import NodeHealth
from rackwright.health.verdict import Action
from rackwright.status import Status
from rackwright.why.parts import Drain, Part
from rackwright.workload.states import DrainedBy


def next_step(
    file: str,
    node: str,
    drain: Drain | None,
    health: NodeHealth,
    changes: int | None,
    clean_passes: int | None,
    bmc: Part | None = None,
) -> str:
    """A sentence. `drain` None: the workload manager did not answer; `changes` None: the plan is not known.

    + bmc: what the BMC reports about a node that does not answer
    """
    if health.why is not None:
        return _out_of_reach(file, node, health.why, bmc)
    found = found_in(health.results)
    if found.outcome is Outcome.BAD:
        worst = found.results[0]
        word = "" if worst.action is Action.NONE else f"{worst.action.value}: "
        after = _after(file, node, drain, clean_passes)
        return f"{word}{worst.remedy}{after}"
    if drain is not None and drain.by is DrainedBy.PERSON:
        return f"ask the person who drained it, then `{drain.resume}`"
    if drain is not None and (drain.run or "").startswith(FIRMWARE):
        return (
            f"`rackwright firmware check {file} --limit {node}`; if that run is over, run its command again"
        )
    if drain is not None and drain.by is DrainedBy.ROLLOUT:
        return f"`rackwright runs {drain.run}`; if that run is over, `rackwright resume {drain.run}`"
    if found.outcome is Outcome.UNKNOWN:
        return f"resolve what is UNKNOWN: {found.results[0].evidence if found.results else 'no check ran'}"
    if drain is not None and drain.by is DrainedBy.HEALTH:
        passes = f" after {clean_passes} clean passes" if clean_passes else ""
        return f"wait: no check fails now, and the node resumes by itself{passes}"
    if drain is not None and drain.by is DrainedBy.MANAGER:
        return f"check {drain.agent} (`journalctl -u {drain.agent}`), then `{drain.resume}`"
    if changes:
        return f"`rackwright plan {file} --limit {node}`, then apply"
    if drain is None or changes is None:
        return "nothing known needs action, but what is UNKNOWN above might"
    minor = [one for one in health.results if one.status is Status.FAIL]  # none of them drains
    return (
        f"at the next maintenance: {minor[0].remedy}"
        if minor
        else "nothing: it is in service and as declared"
    )


def _out_of_reach(file: str, node: str, why: str, bmc: Part | None) -> str:
    """The BMC's findings come first: a node that is off, or stopped by its hardware, stays unreachable."""
    reported = {} if bmc is None else bmc.data
    hard = [one for one in reported.get("results", ()) if one["action"] != Action.NONE.value]
    repair = f"{hard[0]['action']}: {hard[0]['remedy']}" if hard else ""
    if reported.get("power") == "off":
        on = f"`rackwright bmc power {file} on --limit {node}`"
        return f"{repair} Then {on}." if repair else f"it is off: {on}"
    return repair or f"make the node reachable first: {why}"


def _after(file: str, node: str, drain: Drain | None, clean_passes: int | None) -> str:
    """How the node comes back once that is done."""
    if drain is None or drain.by is None:
        return ""
    if drain.by is DrainedBy.HEALTH and clean_passes:
        return f" The node then resumes by itself after {clean_passes} clean passes."
    return f" Then run `rackwright why {file} {node}` again: its health check did not drain it."
