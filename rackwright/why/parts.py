"""The answer of each source about the node, as plain data. A source that was not read is UNKNOWN with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from rackwright.boundary import printable, printable_data
from rackwright.engine.journal_lines import Run
from rackwright.health.document import Document
from rackwright.health.records import Unreadable, describe, is_time
from rackwright.health.run import NodeHealth
from rackwright.health.verdict import HealthResult
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import NodePlan, changes_text
from rackwright.status import Status
from rackwright.why.last import Last
from rackwright.workload.protocol import Job, Manager
from rackwright.workload.states import HEALTH_PREFIX, DrainedBy, NodeState

LINE_MAX_CHARACTERS = 1000
SHOWN = 8
"""Lines of each kind; the JSON has them all."""


@dataclass(frozen=True)
class Part:
    """One answer: lines for people, data for programs."""

    name: str
    lines: tuple[str, ...]
    unknown: bool = False
    data: dict[str, Any] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    """What could not be read, if the rest could."""

    def shown(self) -> Part:
        """The same with printable lines, because they contain text from the node, the head and its users."""
        cut = [
            tuple(printable(line, LINE_MAX_CHARACTERS) for line in lines)
            for lines in (self.lines, self.unread)
        ]
        return replace(self, lines=cut[0], unread=cut[1])

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        unknown = self.unknown or bool(self.unread)
        return {"part": self.name, "unknown": unknown, "lines": [*self.lines, *self.unread], **self.data}


def not_known(name: str, why: str) -> Part:
    """The source could not be read."""
    return Part(name, (why,), unknown=True)


@dataclass(frozen=True)
class Drain:
    """Who took a node out of service, as text, and how it returns."""

    by: DrainedBy | None
    """None: it is in service."""
    line: str
    run: str | None = None
    resume: str = ""
    """The command that returns it to service."""
    agent: str = ""
    """The unit that runs jobs on it."""


def drain_of(state: NodeState, node: str, manager: Manager) -> Drain:
    """From the reason's text, and from who set it."""
    shown = "+".join(sorted(state.words))
    reason = f"{state.reason or 'no reason given'} [{state.by or 'unknown user'}]"
    lines = {
        None: f"in service: {shown}",
        DrainedBy.HEALTH: f"{shown}, by its own health check: {reason}",
        DrainedBy.ROLLOUT: f"{shown}, by rackwright's run {state.run}: {reason}",
        DrainedBy.PERSON: f"{shown}, by {state.by.partition('@')[0]}: {reason}",
        DrainedBy.MANAGER: f"{shown}, by {manager.name} itself: {reason}",
    }
    by = state.drained_by
    return Drain(by, lines[by], state.run, manager.resume_command(node), manager.agent)


def scheduler_part(state: NodeState, drain: Drain, manager: Manager, jobs: Sequence[Job]) -> Part:
    """Whether the node takes jobs, who decided that, and which jobs a drain waits for."""
    by = manager.name.lower() if drain.by is DrainedBy.MANAGER else drain.by and drain.by.value
    waits = [f"jobs still running there: {', '.join(map(str, jobs[:SHOWN]))}"] if jobs else []
    data = {"states": sorted(state.words), "reason": state.reason, "by": state.by, "drained_by": by}
    return Part("scheduler", (drain.line, *waits), data=data)


def health_part(found: NodeHealth, last: Last | None, unread: str | None = None) -> Part:
    """The checks that fail or are UNKNOWN now, and the node's last own verdict.

    UNKNOWN as a whole if nothing was judged. `unread`: why the node's own verdict is unknown.
    """
    if found.why is not None:
        return not_known("health", found.why)
    wrong = [one for one in found.results if one.status is Status.FAIL]
    silent = [one for one in found.results if one.status is Status.UNKNOWN]
    lines = [f"{one.check} FAIL: {one.evidence}" for one in wrong]
    reasons = list(dict.fromkeys(one.evidence for one in silent))
    lines += [f"{_checks(silent, why)} UNKNOWN: {why}" for why in reasons]
    passed = sum(one.status in (Status.PASS, Status.WARN) for one in found.results)
    lines = _cut(lines) or [f"{passed} checks passed, none failed or UNKNOWN"]
    lines += _remembered(last)
    data = {
        "results": [one.to_json() for one in (*wrong, *silent)],
        "passed": passed,
        "last": last.data if last is not None else None,
    }
    nothing = bool(silent) and not wrong and not passed
    return Part("health", tuple(lines), nothing, data, unread=(unread,) if unread is not None else ())


def _checks(results: Sequence[HealthResult], evidence: str) -> str:
    names = [one.check for one in results if one.evidence == evidence]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _remembered(last: Last | None) -> list[str]:
    """Lines from the node's own health check."""
    if last is None:
        return []
    found = []
    if last.policy.act is False:
        found.append("it only observes (health.act: false): it drains, reboots and refuses nothing")
    episode = last.would_drain
    if episode is not None:
        span = f"since {time_text(episode.since)}, in {episode.passes} passes"
        found.append(f"it would have been drained {span}: {episode.reason.removeprefix(HEALTH_PREFIX)}")
    if last.memory.alert:
        found.append(f"alert of the node: {last.memory.alert}")
    if last.memory.drained:
        found.append(f"clean passes in a row: {last.memory.clean} of {last.policy.clean_passes}")
    found += _cut([f"switched off {why}: {name}" for name, why in last.disabled.items()])
    return found


def plan_part(plan: NodePlan) -> Part:
    """What differs from the declaration."""
    if plan.error is not None:
        return not_known("declaration", plan.error)
    lines = [
        f"{operation.role}: {_difference(change)}"
        for operation in plan.operations
        for change in operation.changes
    ]
    if plan.reboot:
        lines.insert(0, f"a reboot is due: {changes_text(plan.reboot)}")
    data = {"changes": plan.changes, "operations": [operation.to_json() for operation in plan.operations]}
    return Part("declaration", tuple(_cut(lines)) or ("nothing differs from the cluster file",), data=data)


def _difference(change: Change) -> str:
    """One thing that differs, in one line; the plan has the text."""
    if change.before == change.after and change.diff:
        added, gone = (sum(line.startswith(sign) for line in change.diff[2:]) for sign in "+-")
        return f"{change.kind} {change.target}: its text would change, {added} lines for {gone}"
    return f"{change.kind} {change.target}: {change.before or 'absent'} -> {change.after or 'absent'}"


def changes_part(cluster: str, node: str, runs: Sequence[Run]) -> Part:
    """Changes that rackwright made to the node, last run first."""
    found = []
    for run in reversed(runs):
        done = [event for event in run.events if event["event"] == "finish" and event.get("node") == node]
        if run.begin.get("cluster") != cluster or not done:
            continue
        names = [f"{event['role']}: {event['name']}" for event in done]
        when, user = time_text(done[-1]["at"]), run.begin.get("user", "?")
        found.append({"run": run.run, "at": done[-1]["at"], "user": user, "state": run.state, "operations": names,
                     "line": f"{when} run {run.run} by {user}, {run.state}, {len(names)} changes: {_few(names)}"})  # fmt: skip
    lines = [one["line"] for one in found[:SHOWN]] or ["no run from this control node has changed it"]
    return Part("changes", tuple(lines), data={"runs": found})


def kernel_part(document: Any, why: str | None, lacking: str | None) -> Part:  # noqa: ANN401
    """The last kernel errors, newest first."""
    try:
        section = Document(document).kernel_log
        entries = sorted(section.entries, key=lambda entry: -entry.at)
        lines = [f"{time_text(entry.at)} {entry.message}" for entry in entries[:SHOWN]]
        none = f"no error in {section.lines} lines since {time_text(section.since)}"
        raw = document["sections"]["kernel_log"]["data"]["entries"]
        data = {"entries": printable_data(sorted(raw, key=lambda entry: -entry["at"]))}
    except (Unreadable, ValueError, OverflowError) as error:
        return not_known("kernel", lacking or why or str(error).removeprefix("kernel_log: "))
    return Part("kernel", tuple(lines) or (none,), data=data)


def time_text(at: float) -> str:
    """UTC, to the second; Unreadable for anything but a time."""
    if not is_time(at):
        raise Unreadable(f"{describe(at)} is not a time")
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _cut(lines: Sequence[str]) -> list[str]:
    more = [f"... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return [*lines[:SHOWN], *more]


def _few(names: Sequence[str]) -> str:
    return "; ".join(names[:3]) + (f"; and {len(names) - 3} more" if len(names) > 3 else "")
