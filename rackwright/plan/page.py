"""A plan as one page of HTML for reviewers: folded as on a terminal, every part of it opens. No network, no server."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rackwright import __version__
from rackwright.model.ranges import fold
from rackwright.plan.changes import Change
from rackwright.plan.folding import FoldedOperation, Variant, counted, failures, notes, number, reboots, steps
from rackwright.plan.node_plan import PlanResult
from rackwright.render import render

_IN_FULL = 3
"""Contents of an operation that are shown whole; of the others, the lines in which they differ."""
_DIFFERENCES_MAX = 2_000_000
"""Characters of these differences on a page, shared out between the operations that have them."""
_LINE_MAX = 400
_OPEN_STEPS = 12
"""Operations of a plan that is open from the start."""


@dataclass(frozen=True)
class Line:
    """One change: its words, its sign and its diff."""

    sign: str
    words: str
    diff: tuple[str, ...]


@dataclass(frozen=True)
class Content:
    """What an operation changes on some nodes, and the commands it runs on the first of them."""

    nodes: str
    count: int
    changes: list[Line]
    commands: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """Lines that other nodes have in place of those of the first content."""

    nodes: str
    lines: list[str]


@dataclass(frozen=True)
class Shown:
    """An operation on the page."""

    step: FoldedOperation
    nodes: str
    count: int
    words: str
    contents: list[Content]
    differences: list[Difference]
    left_out: str
    """Nodes whose contents had no room; the plan's JSON has them."""
    left_out_count: int
    erased: list[tuple[str, str, str]]


def plan_page(plan: PlanResult, written: datetime | None = None) -> str:
    """The whole page; `written`: when the plan was made."""
    roles = steps(plan)
    many = sum(len(step.variants) > _IN_FULL for of_role in roles.values() for step in of_role)
    room = _DIFFERENCES_MAX // max(many, 1)
    shown = {role: [_shown(step, room) for step in of_role] for role, of_role in roles.items()}
    everything = [one for of_role in shown.values() for one in of_role]
    script = render("plan/plan.js.j2")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return render(
        "plan/plan.html.j2",
        plan=plan,
        version=__version__,
        written=(written or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC"),
        totals=_totals(plan, everything),
        roles=[
            (role, shown[role], counted(of_role), fold({node for step in of_role for node in step.nodes}))
            for role, of_role in roles.items()
        ],
        disruptive=[one for one in everything if one.step.disruptive],
        erasing=[one for one in everything if one.erased],
        failures=failures(plan),
        reboots=[(text, waiting, fold(nodes)) for (text, waiting), nodes in reboots(plan).items()],
        notes=notes(plan),
        unfolded=len(everything) <= _OPEN_STEPS,
        fold=fold,
        style=render("plan/plan.css.j2"),
        script=script,
        script_digest=digest,
    )


def _totals(plan: PlanResult, shown: Sequence[Shown]) -> list[tuple[int, str, str]]:
    """(number, what, class) of each tile."""
    changing = sum(bool(node.changes) for node in plan.nodes.values())
    disruptive = sum(one.disruptive for node in plan.nodes.values() for one in node.operations)
    erased = sum(len(one.erased) for one in shown)
    return [
        (len(plan.nodes), "nodes", ""),
        (changing, "nodes that change", ""),
        (plan.changes, "changes", ""),
        (disruptive, "disruptive", "warn" if disruptive else ""),
        (len(plan.reboots), "reboots due", "warn" if plan.reboots else ""),
        (erased, "disks erased", "bad" if erased else ""),
        (len(plan.failed), "nodes unknown", "bad" if plan.failed else ""),
    ]


def _shown(step: FoldedOperation, room: int) -> Shown:
    variants = sorted(step.variants, key=lambda variant: -len(variant.nodes))
    in_full, others = variants[:_IN_FULL], variants[_IN_FULL:]
    differences = []
    known = set(_text(variants[0].operation.changes))
    while others and room > 0:
        different = [line for line in _text(others[0].operation.changes) if line not in known]
        found = Difference(fold(others[0].nodes), different)
        room -= len(found.nodes) + sum(len(line) for line in different)
        differences.append(found)
        others = others[1:]
    left = [node for variant in others for node in variant.nodes]
    return Shown(
        step,
        fold(step.nodes),
        len(step.nodes),
        ", ".join(_summary(variants[0].operation.changes)),
        [_content(variant) for variant in in_full],
        differences,
        fold(left) if left else "",
        len(others),
        [(node, change.target, change.before or "") for node, change in step.erased()],
    )


def _content(variant: Variant) -> Content:
    changes = [Line(_sign(change), _words(change), change.diff[2:]) for change in variant.operation.changes]
    return Content(fold(variant.nodes), len(variant.nodes), changes, variant.operation.commands)


def _text(changes: Iterable[Change]) -> Iterator[str]:
    """A line for each change and each changed line of a diff."""
    for change in changes:
        yield f"{_sign(change)} {_words(change)}"[:_LINE_MAX]
        for line in change.diff[2:]:
            if line.startswith(("+", "-")):
                yield line[:_LINE_MAX]


def _summary(changes: Sequence[Change]) -> Iterator[str]:
    kinds: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        kinds.setdefault((_sign(change), change.kind), []).append(change)
    for (sign, _), same in kinds.items():
        yield f"{sign} {number(len(same), same[0].kind) if len(same) > 1 else same[0].kind}{_size(same)}"


def _sign(change: Change) -> str:
    if change.before is None:
        return "+"
    return "-" if change.after is None else "~"


def _words(change: Change) -> str:
    values = ""
    if change.before != change.after:
        values = f": {change.before or 'nothing'} → {change.after or 'removed'}"
    because = f", because {change.because}" if change.because else ""
    return f"{change.kind} {change.target}{values}{because}"


def _size(changes: Sequence[Change]) -> str:
    added = sum(line.startswith("+") for change in changes for line in change.diff[2:])
    removed = sum(line.startswith("-") for change in changes for line in change.diff[2:])
    return f" +{added} -{removed}" if any(change.diff for change in changes) else ""
