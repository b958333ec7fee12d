"""What to do next, from all that is known: one pure function, the most pressing rule first."""

from __future__ import annotations

from rackwright.health.guard.policy import Outcome, found_in
from rackwright.health.run import NodeHealth
from rackwright.health.verdict import Action
from rackwright.status import Status
from rackwright.why.parts import Drain


def next_step(
    file: str,
    node: str,
    drain: Drain | None,
    health: NodeHealth,
    changes: int | None,
    clean_passes: int | None,
) -> str:
    """A sentence. `drain` None: Slurm did not say; `changes` None: the plan is not known."""
    if health.why is not None:
        return f"reach the node first: {health.why}"
    found = found_in(health.results)
    if found.outcome is Outcome.BAD:
        worst = found.results[0]
        word = "" if worst.action is Action.NONE else f"{worst.action.value}: "
        after = _after(file, node, drain, clean_passes)
        return f"{word}{worst.remedy}{after}"
    if drain is not None and drain.who == "person":
        return f"ask who drained it; then `scontrol update NodeName={node} State=RESUME`"
    if drain is not None and drain.who == "rollout":
        return f"`rackwright runs {drain.run}`; if that run is over, `rackwright resume {drain.run}`"
    if found.outcome is Outcome.UNKNOWN:
        return f"find out what is not known: {found.results[0].evidence if found.results else 'no check ran'}"
    if drain is not None and drain.who == "health":
        passes = f" after {clean_passes} clean passes" if clean_passes else ""
        return f"wait: nothing is wrong now, and the node resumes itself{passes}"
    if drain is not None and drain.who == "slurm":
        return f"look at slurmd (`journalctl -u slurmd`); then `scontrol update NodeName={node} State=RESUME`"
    if changes:
        return f"`rackwright plan {file} --limit {node}`, then apply"
    if drain is None or changes is None:
        return "nothing that is known asks for anything; what is UNKNOWN above might"
    minor = [one for one in health.results if one.status is Status.FAIL]  # none of them drains
    return f"at leisure: {minor[0].remedy}" if minor else "nothing: it is in service and as declared"


def _after(file: str, node: str, drain: Drain | None, clean_passes: int | None) -> str:
    """How the node comes back once that is done."""
    if drain is None or drain.who is None:
        return ""
    if drain.who == "health" and clean_passes:
        return f" The node then resumes itself after {clean_passes} clean passes."
    return f" Then `rackwright why {file} {node}` again: it was not drained by its health check."
