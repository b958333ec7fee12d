"""Results of checks as a page lists them: what is wrong one by one, the rest by reason or by role, all of it by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rackwright.accept.report import AcceptReport
from rackwright.claims.check import CheckResult
from rackwright.clustermap.looks import STATUSES
from rackwright.clustermap.racks import Face
from rackwright.drawing.model import Look
from rackwright.model.ranges import fold
from rackwright.status import Status
from rackwright.verify.report import SEVERITY, folded

DIFFERS = "differs between nodes, see report.json"
_WRONG = (Status.FAIL, Status.UNKNOWN, Status.WARN)


@dataclass(frozen=True)
class Line:
    """Equal results of several nodes."""

    role: str
    check: str
    nodes: str
    status: Status
    evidence: str
    anchor: str = ""


@dataclass(frozen=True)
class Checks:
    """Checks of one role that are alike for the same nodes."""

    role: str
    nodes: str
    checks: tuple[str, ...]


@dataclass(frozen=True)
class Beyond:
    """Everything that is out of scope for one reason."""

    reason: str
    results: int
    groups: tuple[Checks, ...]


@dataclass(frozen=True)
class Held:
    """Everything that holds of one role."""

    role: str
    nodes: str
    results: int
    lines: tuple[Line, ...]


def troubles(results: Sequence[CheckResult]) -> tuple[Line, ...]:
    """What failed, is unknown or has a reservation, worst first."""
    wrong = [pair for pair in folded(results) if pair[0].status in _WRONG]
    wrong.sort(key=lambda pair: SEVERITY.index(pair[0].status))
    return tuple(
        Line(one.role, one.check, nodes, one.status, one.evidence, f"t{number}")
        for number, (one, nodes) in enumerate(wrong, 1)
    )


def out_of_scope(results: Iterable[CheckResult]) -> tuple[Beyond, ...]:
    """By reason, the one with the most results first; within it by role and nodes."""
    by_reason: defaultdict[str, dict[tuple[str, str], list[str]]] = defaultdict(dict)
    for one in results:
        if one.status is Status.OUT_OF_SCOPE:
            by_reason[one.evidence].setdefault((one.role, one.check), []).append(one.node)
    found = []
    for reason, checks in by_reason.items():
        alike: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for (role, check), nodes in checks.items():
            alike[role, fold(nodes)].append(check)
        groups = tuple(Checks(role, nodes, tuple(names)) for (role, nodes), names in sorted(alike.items()))
        found.append(Beyond(reason, sum(map(len, checks.values())), groups))
    return tuple(sorted(found, key=lambda one: -one.results))


def passes(results: Iterable[CheckResult]) -> tuple[Held, ...]:
    """By role, one line for each check; evidence that differs between nodes stays in report.json."""
    by_role: defaultdict[str, dict[str, list[CheckResult]]] = defaultdict(dict)
    for one in results:
        if one.status is Status.PASS:
            by_role[one.role].setdefault(one.check, []).append(one)
    return tuple(
        Held(
            role,
            fold({one.node for same in checks.values() for one in same}),
            sum(map(len, checks.values())),
            tuple(_held(role, check, same) for check, same in checks.items()),
        )
        for role, checks in by_role.items()
    )


def _held(role: str, check: str, same: Sequence[CheckResult]) -> Line:
    evidences = {one.evidence for one in same}
    evidence = evidences.pop() if len(evidences) == 1 else DIFFERS
    return Line(role, check, fold(one.node for one in same), Status.PASS, evidence)


def faces(report: AcceptReport, lines: Sequence[Line]) -> dict[str, Face]:
    """Each node by its worst result, of its checks and of the apply; a node without any is neutral."""
    found = {name: Face(Look.NEUTRAL, "not verified") for name in report.nodes}
    by_node: defaultdict[str, list[tuple[Status, str, str]]] = defaultdict(list)
    anchors = {(line.role, line.check, line.status, line.evidence): line.anchor for line in lines}
    for one in report.verified.results if report.verified is not None else ():
        anchor = anchors.get((one.role, one.check, one.status, one.evidence), "")
        by_node[one.node].append((one.status, f"{one.role}: {one.check}: {one.evidence}", anchor))
    for name, (status, text) in _of_apply(report).items():
        by_node[name].append((status, f"apply: {text}", ""))
    for name, listed in by_node.items():
        worst = min((status for status, _, _ in listed), key=SEVERITY.index)
        shown = STATUSES[worst]
        wrong = sorted((one for one in listed if one[0] in _WRONG), key=lambda one: SEVERITY.index(one[0]))
        anchor = next((anchor for _, _, anchor in wrong if anchor), "")
        found[name] = Face(shown.look, shown.label, tuple(text for _, text, _ in wrong[:6]), anchor)
    return found


def _of_apply(report: AcceptReport) -> Mapping[str, tuple[Status, str]]:
    result = report.applied.result if report.applied is not None else None
    return {
        outcome.node: (
            Status.UNKNOWN if outcome.unreachable else Status.FAIL,
            outcome.error or "it failed without a reason",
        )
        for outcome in (result.failed if result is not None else ())
    }
