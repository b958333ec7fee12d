"""A plan and its outcome on a terminal: equal changes once, and at most two screens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from rackwright.cli.plan_lines import Lines
from rackwright.model.ranges import fold
from rackwright.plan.folding import Alike, FoldedOperation, alike, failures, notes, reboots, steps
from rackwright.plan.node_plan import ApplyResult, NodeOutcome, PlanResult, changes_text

_REASONS = 12
"""Reasons for which nodes cannot be planned that are printed; nodes of more are named without."""
_LINES, _COLUMNS = 100, 120
"""Two screens: what a plan is folded to."""
_KEPT = 4
"""Lines of that for the hint, the summary and the question that follows."""
_OUTCOMES = 40
"""Nodes whose outcome has a line each; of more, equal ones are put together."""


def show_plan(plan: PlanResult, console: Console, *, verbose: bool = False, more: str = "-v") -> None:
    """Print the plan, folded to two screens unless `verbose`; `more`: what the operator types to see all of it."""
    lines = Lines(verbose=verbose)
    last = list(_rest(plan, lines))
    for line in (*_roles(steps(plan), lines, _LINES - _KEPT - _height(last), verbose=verbose), *last):
        console.print(line, highlight=False)
    if lines.left_out:
        console.print(f"\n[dim]not shown in full: {escape(more)} shows everything[/dim]", highlight=False)
    console.print(f"\n{summary(plan)}", highlight=False)


@dataclass(frozen=True)
class _Block:
    """A role at one level."""

    lines: list[str]
    left_out: bool

    @cached_property
    def height(self) -> int:
        """Lines of 120 columns."""
        return _height(self.lines)

    @property
    def apart(self) -> bool:
        """Whether it begins with a blank line."""
        return not self.lines[0]


def _roles(
    roles: dict[str, list[FoldedOperation]], lines: Lines, room: int, *, verbose: bool
) -> Iterable[str]:
    """Each role in as many lines as there is room for: short ones first, and an operation a line before any diff."""
    if verbose:
        return (line for role, of_role in roles.items() for line in lines.in_full(role, of_role))
    shown = {role: _block(Lines.counts, role, of_role, None) for role, of_role in roles.items()}
    for level in (Lines.operations, Lines.in_full):
        longer = {role: _block(level, role, of_role, room) for role, of_role in roles.items()}
        for role in sorted(longer, key=lambda role: longer[role].height - shown[role].height):
            attempt = {**shown, role: longer[role]}
            if sum(block.height for block in attempt.values()) + _breaks(attempt.values()) <= room:
                shown = attempt
    lines.left_out |= any(block.left_out for block in shown.values())
    return _joined(shown.values())


def _block(
    level: Callable[[Lines, str, list[FoldedOperation]], Iterator[str]],
    role: str,
    of_role: list[FoldedOperation],
    room: int | None,
) -> _Block:
    made = Lines()
    text = list(islice(level(made, role, of_role), None if room is None else max(room, 0) + 1))
    return _Block(text, made.left_out)


def _breaks(blocks: Iterable[_Block]) -> int:
    return sum(before.apart and not after.apart for before, after in pairwise(blocks))


def _joined(blocks: Iterable[_Block]) -> Iterator[str]:
    """With a blank line after a role in full."""
    apart = False
    for block in blocks:
        if apart and not block.apart:
            yield ""
        yield from block.lines
        apart = block.apart


def _height(lines: Iterable[str]) -> int:
    """How many lines of 120 columns these are."""
    plain = (row for line in lines for row in Text.from_markup(line).plain.split("\n"))
    return sum(max(1, -(-cell_len(row) // _COLUMNS)) for row in plain)


def _rest(plan: PlanResult, lines: Lines) -> Iterator[str]:
    """What is never folded away: reboots, notes, and nodes whose plan is not known."""
    for (text, waiting), nodes in reboots(plan, every=lines.verbose).items():
        yield f"\n[yellow]{escape(fold(nodes))}: reboot due[/yellow]: {escape(text)}"
        if waiting:
            words = f"{waiting} operations wait" if waiting > 1 else "1 operation waits"
            yield f"  {words} for the reboot"
    for note in notes(plan):
        yield f"\n[yellow]{escape(fold(note.nodes))}[/yellow]: {lines.text(note.text)}"
    for unreachable, groups in failures(plan).items():
        state = "unreachable" if unreachable else "cannot be planned"
        yield from _failed(state, groups, lines)


def _failed(state: str, groups: list[Alike], lines: Lines) -> Iterator[str]:
    shown = groups if lines.verbose else groups[:_REASONS]
    for group in shown:
        example = "" if group.same else f"{group.nodes[0]}: "
        if not group.same and lines.verbose:
            for node in group.nodes:
                yield f"\n[red]{escape(node)}: {state}[/red]: {escape(group.texts[node])}"
            continue
        lines.left_out |= not group.same
        yield f"\n[red]{escape(fold(group.nodes))}: {state}[/red]: {escape(example)}{lines.text(group.text)}"
    if left := [node for group in groups[len(shown) :] for node in group.nodes]:
        lines.left_out = True
        yield f"\n[red]{escape(fold(left))}: {state}[/red], for {len(groups) - len(shown)} other reasons"


def summary(plan: PlanResult) -> str:
    """One line: how much would change on how many nodes, and the unknown nodes."""
    changing = [node for node in plan.nodes.values() if node.changes]
    disruptive = sum(operation.disruptive for node in changing for operation in node.operations)
    words = (
        f"{plan.changes} changes on {len(changing)} of {len(plan.nodes)} nodes, {disruptive} disruptive"
        if plan.changes
        else f"nothing to change on {len(plan.nodes) - len(plan.failed)} of {len(plan.nodes)} nodes"
    )
    if plan.reboots:
        words += f"; reboot due on {fold(plan.reboots)}"
    if plan.failed:
        words += f"; unknown: {fold(node.node for node in plan.failed)}"
    return f"plan: {words}"


def show_outcome(result: ApplyResult, console: Console, *, verb: str = "apply") -> None:
    """One line per node that had something to do or failed, then one for the whole."""
    shown = [one for one in result.nodes.values() if not one.ok or one.changed or one.reboot]
    for line in map(_outcome_line, shown) if len(shown) <= _OUTCOMES else _folded_outcomes(shown):
        console.print(line, highlight=False)
    done = sum(outcome.as_declared for outcome in result.nodes.values())
    became = "are as declared" if verb == "apply" else "were rebooted and pass their checks"
    words = f"{verb}: {done} of {len(result.nodes)} nodes {became}"
    if result.failed:
        words += f"; not: {fold(outcome.node for outcome in result.failed)}"
    if result.reboots:
        words += f"; reboot due on {fold(result.reboots)}"
    if result.interrupted:
        words += "; interrupted, run again to finish"
    console.print(words, highlight=False)


def _outcome_line(outcome: NodeOutcome) -> str:
    name = escape(outcome.node)
    if outcome.ok:
        due = (
            f"; [yellow]reboot due[/yellow]: {escape(changes_text(outcome.reboot))}" if outcome.reboot else ""
        )
        return f"[green]{name}[/green]: {outcome.changed} changed in {outcome.seconds:.1f} s{due}"
    state = _state(outcome.unreachable, outcome.changed)
    return f"[red]{name}[/red]: {state}: {escape(outcome.error or '')}"


def _folded_outcomes(shown: list[NodeOutcome]) -> Iterator[str]:
    """Nodes with the same outcome in one line, those that failed by their reasons."""
    good: dict[tuple[int, str], list[NodeOutcome]] = {}
    bad: dict[tuple[bool, int], dict[str, str]] = {}
    for one in shown:
        if one.ok:
            good.setdefault((one.changed, changes_text(one.reboot)), []).append(one)
        else:
            bad.setdefault((one.unreachable, one.changed), {})[one.node] = one.error or ""
    for (changed, reboot), same in good.items():
        seconds = [one.seconds for one in same]
        due = f"; [yellow]reboot due[/yellow]: {escape(reboot)}" if reboot else ""
        nodes = escape(fold(one.node for one in same))
        yield f"[green]{nodes}[/green]: {changed} changed in {min(seconds):.1f} to {max(seconds):.1f} s{due}"
    for (unreachable, changed), errors in bad.items():
        for group in alike(errors):
            example = "" if group.same else f"{group.nodes[0]}: "
            state = _state(unreachable, changed)
            yield f"[red]{escape(fold(group.nodes))}[/red]: {state}: {escape(example + group.text)}"


def _state(unreachable: bool, changed: int) -> str:
    return ("lost" if unreachable else "failed") + (f" after {changed} changes" if changed else "")
