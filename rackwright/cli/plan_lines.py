"""Lines of a plan, with rich's markup, at three levels: in full, an operation a line, counts of each role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from rich.markup import escape

from rackwright.model.ranges import fold
from rackwright.plan.changes import Change
from rackwright.plan.folding import FoldedOperation, by_nodes, counted, number

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_VARIANTS = 3
"""Contents of an operation that are all shown; of more, one is summed up."""
_DIFF_LINES = 40
_NODES = 70
"""Characters of a NodeSet of which the rest may be left out."""
_VALUE = 60
"""Characters of a value in a line that sums up."""
_DISKS = 8
"""Disks to be erased that are listed one by one."""
_REASONS = 3


class Lines:
    """Makes lines and remembers whether they leave something out."""

    def __init__(self, *, verbose: bool = False) -> None:
        self.verbose = verbose
        self.left_out = False

    def in_full(self, role: str, of_role: Sequence[FoldedOperation]) -> Iterator[str]:
        """Every operation with its changes; new files are summed up unless verbose."""
        yield from ("", f"[bold]{escape(role)}[/bold]")
        for step in of_role:
            if len(step.variants) > _VARIANTS and not self.verbose:
                self.left_out = True
                yield summed_up(step)
                yield from erased(step)
                continue
            for variant in step.variants:
                mark = " [yellow](disruptive)[/yellow]" if variant.operation.disruptive else ""
                yield f"  {escape(nodeset(variant.nodes))}: {escape(step.name)}{mark}"
                for change in variant.operation.changes:
                    yield from self._change(change)

    def operations(self, role: str, of_role: Sequence[FoldedOperation]) -> Iterator[str]:
        """An operation a line."""
        self.left_out = True
        yield from ("", f"[bold]{escape(role)}[/bold]")
        for step in of_role:
            yield summed_up(step)
            yield from erased(step)

    def counts(self, role: str, of_role: Sequence[FoldedOperation]) -> Iterator[str]:
        """How many operations of which kind; what interrupts or destroys something is named all the same."""
        self.left_out = True
        groups = by_nodes(of_role)
        if len(groups) > _VARIANTS:
            sizes = [len(needed) for needed in groups.values()]
            nodes = [node for of_group in groups for node in of_group]
            yield _counts(role, f"{min(sizes)} to {max(sizes)} of {len(of_role)}", nodes, of_role)
        else:
            for of_group, needed in groups.items():
                yield _counts(role, str(len(needed)), of_group, needed)
        for step in of_role:
            if step.disruptive or any(True for _ in step.erased()):
                yield summed_up(step)
                yield from erased(step)

    def text(self, text: str, limit: int = 12) -> str:
        """An error or a note; its first lines unless verbose."""
        first = text.split("\n")
        if self.verbose or len(first) <= limit:
            return escape(text)
        self.left_out = True
        return escape("\n".join([*first[:limit], f"    … {len(first) - limit} more lines, -v shows all"]))

    def _change(self, change: Change) -> Iterator[str]:
        sign = _sign(change)
        colour = _COLOURS.get(sign, "yellow")
        words = f"{change.kind} {change.target}{_values(change)}{_size((change,))}{_because(change)}"
        yield f"    [{colour}]{sign}[/{colour}] {escape(words)}"
        lines = change.diff[2:]
        if lines and change.before is None and not self.verbose:
            self.left_out = True
            return
        shown = len(lines) if self.verbose or len(lines) <= _DIFF_LINES + 3 else _DIFF_LINES
        for line in lines[:shown]:
            colour = _COLOURS.get(line[:1], "dim")
            yield f"      [{colour}]{escape(line)}[/{colour}]"
        if shown < len(lines):
            self.left_out = True
            yield f"      [dim]… {len(lines) - shown} more lines, -v shows all[/dim]"


def summed_up(step: FoldedOperation) -> str:
    """An operation in one line: its nodes, what it changes, and how many variants of that there are."""
    mark = " [yellow](disruptive)[/yellow]" if step.disruptive else ""
    nodes = nodeset(step.nodes) if step.disruptive else short_nodes(step.nodes)
    example = step.example
    words = _changes(example.operation.changes, step.name)
    if len(step.variants) > 1:
        words = f"{len(step.variants)} variants, one of them {words} on {short_nodes(example.nodes)}"
    reasons = sorted(
        {_because(each) for variant in step.variants for each in variant.operation.changes} - {""}
    )
    if len(reasons) > _REASONS:
        reasons = [*reasons[:_REASONS], f" and {len(reasons) - _REASONS} more reasons"]
    because = ",".join(reasons) if step.disruptive else ""
    return f"  {escape(nodes)}: {escape(step.name)}{mark}  [dim]{escape(words + because)}[/dim]"


def erased(step: FoldedOperation) -> Iterator[str]:
    """The disks whose content is destroyed, one by one or, of many, how many on which nodes."""
    disks = list(step.erased())
    if len(disks) <= _DISKS:
        for node, change in disks:
            yield f"    [red]erases[/red] {escape(f'{node}: {change.target}: {change.before}')}"
        return
    node, change = disks[0]
    nodes = nodeset({node for node, _ in disks})
    example = f"{node}: {change.target}: {change.before}"
    yield f"    [red]erases {len(disks)} disks[/red] on {escape(nodes)}, one of them {escape(_cut(example, 120))}"


def nodeset(nodes: Iterable[str]) -> str:
    """As `fold`; the same nodes stand on many lines, and a thousand of them take 20 ms."""
    return _folded(tuple(sorted(nodes)))


@lru_cache(maxsize=1024)
def _folded(nodes: tuple[str, ...]) -> str:
    return fold(nodes)


def short_nodes(nodes: Sequence[str]) -> str:
    """A NodeSet; a long one is cut off and counted."""
    whole = nodeset(nodes)
    if len(whole) <= _NODES:
        return whole
    return f"{whole[: whole.rfind(',', 0, _NODES)]},… ({len(set(nodes))} nodes)"


def _counts(role: str, count: str, nodes: Sequence[str], needed: Sequence[FoldedOperation]) -> str:
    noun = "operation" if count == "1" else "operations"
    where = f"{count} {noun} on {short_nodes(nodes)}"
    return f"[bold]{escape(role)}[/bold]: {escape(where)}: {escape(counted(needed))}"


def _changes(changes: Sequence[Change], name: str) -> str:
    """What an operation changes, in a few words: `~ file +1 -1`, `+ 14 packages`."""
    groups: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        groups.setdefault((_sign(change), change.kind), []).append(change)
    words = []
    for (sign, _), same in groups.items():
        first = same[0]
        if len(same) > 1:
            words.append(f"{sign} {number(len(same), first.kind)}{_size(same)}")
        else:
            target = "" if first.target in name.split() else f" {_cut(first.target, _VALUE)}"
            values = "" if first.diff else _cut(_values(first), _VALUE)
            words.append(f"{sign} {first.kind}{target}{values}{_size(same)}")
    return ", ".join(words)


def _sign(change: Change) -> str:
    if change.before is None:
        return "+"
    return "-" if change.after is None else "~"


def _values(change: Change) -> str:
    if change.before is None or change.after is None:
        words = change.after if change.before is None else change.before
    else:
        words = None if change.before == change.after else f"{change.before} -> {change.after}"
    return f" ({words})" if words else ""


def _size(changes: Sequence[Change]) -> str:
    added = sum(line.startswith("+") for change in changes for line in change.diff[2:])
    removed = sum(line.startswith("-") for change in changes for line in change.diff[2:])
    return f" +{added} -{removed}" if any(change.diff for change in changes) else ""


def _because(change: Change) -> str:
    return f" because {change.because}" if change.because else ""


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
