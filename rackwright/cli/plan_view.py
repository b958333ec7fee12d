"""A plan and its outcome on a terminal; equal changes of several nodes are printed once."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from rackwright.model.ranges import fold
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import ApplyResult, NodeOutcome, PlannedOperation, PlanResult, changes_text

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def show_plan(plan: PlanResult, console: Console, *, verbose: bool = False) -> None:
    """Print the plan; new files are summed up unless `verbose`, changed ones show their diff."""
    role = None
    for operation, nodes in _grouped(plan):
        if operation.role != role:
            role = operation.role
            console.print(f"\n[bold]{escape(role)}[/bold]")
        mark = " [yellow](disruptive)[/yellow]" if operation.disruptive else ""
        console.print(f"  {escape(fold(nodes))}: {escape(operation.name)}{mark}")
        for change in operation.changes:
            _show_change(change, console, verbose)
    _show_reboots(plan, console)
    for note, nodes in _notes(plan).items():
        console.print(f"\n[yellow]{escape(fold(nodes))}[/yellow]: {escape(note)}")
    for failed in plan.failed:
        state = "unreachable" if failed.unreachable else "cannot be planned"
        console.print(f"\n[red]{escape(failed.node)}: {state}[/red]: {escape(failed.error or '')}")
    console.print(f"\n{summary(plan)}", highlight=False)


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
    for outcome in result.nodes.values():
        if not outcome.ok or outcome.changed or outcome.reboot:
            console.print(_outcome_line(outcome), highlight=False)
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
    state = "lost" if outcome.unreachable else "failed"
    before = f" after {outcome.changed} changes" if outcome.changed else ""
    return f"[red]{name}[/red]: {state}{before}: {escape(outcome.error or '')}"


def _grouped(plan: PlanResult) -> list[tuple[PlannedOperation, list[str]]]:
    """Equal operations with the nodes they are on, in the order in which a node would run them."""
    groups: dict[tuple[object, ...], tuple[PlannedOperation, list[str]]] = {}
    place: dict[tuple[object, ...], int] = {}
    roles: dict[str, int] = {}
    for node in plan.nodes.values():
        for index, operation in enumerate(node.operations):
            key = (operation.role, operation.name, operation.changes)
            groups.setdefault(key, (operation, []))[1].append(node.node)
            place[key] = min(place.get(key, index), index)
            roles.setdefault(operation.role, len(roles))
    return [groups[key] for key in sorted(groups, key=lambda key: (roles[str(key[0])], place[key]))]


def _show_reboots(plan: PlanResult, console: Console) -> None:
    """Reboots that are due, equal ones once, and how many operations wait for them."""
    groups: dict[tuple[str, int], list[str]] = {}
    for name, reboot in plan.reboots.items():
        groups.setdefault((changes_text(reboot), len(plan.nodes[name].after_reboot)), []).append(name)
    for (text, waiting), nodes in groups.items():
        console.print(
            f"\n[yellow]{escape(fold(nodes))}: reboot due[/yellow]: {escape(text)}", highlight=False
        )
        if waiting:
            words = f"{waiting} operations wait" if waiting > 1 else "1 operation waits"
            console.print(f"  {words} for the reboot", highlight=False)


def _notes(plan: PlanResult) -> dict[str, list[str]]:
    """Notes on the evaluation, e.g. no python3, with their nodes."""
    notes: dict[str, list[str]] = {}
    for node in plan.nodes.values():
        if node.note is not None and node.error is None:
            notes.setdefault(node.note, []).append(node.node)
    return notes


def _show_change(change: Change, console: Console, verbose: bool) -> None:
    if change.before is None:
        sign, words = "+", change.after
    elif change.after is None:
        sign, words = "-", change.before
    elif change.before == change.after:
        sign, words = "~", None
    else:
        sign, words = "~", f"{change.before} -> {change.after}"
    added = sum(line.startswith("+") for line in change.diff[2:])
    removed = sum(line.startswith("-") for line in change.diff[2:])
    counts = f" +{added} -{removed}" if change.diff else ""
    because = f" because {change.because}" if change.because else ""
    colour = _COLOURS.get(sign, "yellow")
    values = f" ({words})" if words else ""
    console.print(
        f"    [{colour}]{sign}[/{colour}] {escape(f'{change.kind} {change.target}{values}{counts}{because}')}",
        highlight=False,
    )
    if change.diff and (verbose or change.before is not None):
        for line in change.diff[2:]:
            colour = _COLOURS.get(line[:1], "dim")
            console.print(f"      [{colour}]{escape(line)}[/{colour}]", highlight=False)
