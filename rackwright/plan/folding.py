"""A plan with equal things put together, so that a thousand nodes can be read: steps, variants, failures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rackwright.plan.changes import Change, Kind
from rackwright.plan.node_plan import PlannedOperation, PlanResult, changes_text

_ADDRESS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}")
_REBOOT_TEXTS = 5
"""Different texts of reboots for the same reason, of which more are one group."""
_NOUNS: dict[Kind, tuple[str, str]] = {
    "directory": ("directory", "directories"),
    "slurm": ("Slurm record", "Slurm records"),
    "database": ("database object", "database objects"),
}


@dataclass(frozen=True)
class Variant:
    """An operation and the nodes on which it changes exactly the same."""

    operation: PlannedOperation
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class FoldedOperation:
    """The operation of one role and name on all nodes that need it, by what it changes there."""

    role: str
    name: str
    variants: tuple[Variant, ...]
    """In file order of their first nodes."""

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Every node that needs it."""
        return tuple(node for variant in self.variants for node in variant.nodes)

    @property
    def example(self) -> Variant:
        """The variant with the most nodes."""
        return max(self.variants, key=lambda variant: len(variant.nodes))

    @property
    def disruptive(self) -> bool:
        """Whether it interrupts something on one of its nodes."""
        return any(variant.operation.disruptive for variant in self.variants)

    @property
    def kind(self) -> Kind | None:
        """What it changes, by its first change; None where it recorded none."""
        changes = self.example.operation.changes
        return changes[0].kind if changes else None

    def erased(self) -> Iterator[tuple[str, Change]]:
        """(node, change) of each disk whose content it destroys."""
        for variant in self.variants:
            for change in variant.operation.changes:
                if change.erases is not None:
                    yield from ((node, change) for node in variant.nodes)


def steps(plan: PlanResult) -> dict[str, list[FoldedOperation]]:
    """The steps of each role, in the order in which a node would run them.

    Each operation is hashed and compared once, so a thousand nodes with a hundred operations take a second.
    """
    found: dict[tuple[str, str, int], dict[tuple[Change, ...], tuple[PlannedOperation, list[str]]]] = {}
    place: dict[tuple[str, str, int], int] = {}
    for node in plan.nodes.values():
        seen: Counter[tuple[str, str]] = Counter()
        for index, operation in enumerate(node.operations):
            name = (operation.role, operation.name)
            key = (*name, seen[name])
            seen[name] += 1
            found.setdefault(key, {}).setdefault(operation.changes, (operation, []))[1].append(node.node)
            place[key] = min(place.get(key, index), index)
    by_role: dict[str, list[FoldedOperation]] = {key[0]: [] for key in found}
    for key in sorted(found, key=place.__getitem__):
        variants = tuple(Variant(operation, tuple(nodes)) for operation, nodes in found[key].values())
        by_role[key[0]].append(FoldedOperation(key[0], key[1], variants))
    return by_role


def by_nodes(of_role: Sequence[FoldedOperation]) -> dict[tuple[str, ...], list[FoldedOperation]]:
    """Steps by the nodes that need exactly them: nodes of a kind, mostly."""
    needs: dict[str, list[int]] = {}
    for index, step in enumerate(of_role):
        for node in step.nodes:
            needs.setdefault(node, []).append(index)
    alike: dict[tuple[int, ...], list[str]] = {}
    for node, indices in needs.items():
        alike.setdefault(tuple(indices), []).append(node)
    return {tuple(nodes): [of_role[index] for index in indices] for indices, nodes in alike.items()}


def counted(of_role: Iterable[FoldedOperation]) -> str:
    """How many steps change what, e.g. `6 files, 3 packages, 2 units (1 disruptive)`."""
    listed = list(of_role)
    kinds = Counter(step.kind for step in listed)
    words = ", ".join(number(count, kind) for kind, count in kinds.most_common())
    disruptive = sum(step.disruptive for step in listed)
    return words + (f" ({disruptive} disruptive)" if disruptive else "")


def number(count: int, kind: Kind | None) -> str:
    """A number of things of a kind, e.g. `2 directories`."""
    one, many = _NOUNS.get(kind, (kind, f"{kind}s")) if kind is not None else ("other", "others")
    return f"{count} {one if count == 1 else many}"


@dataclass(frozen=True)
class Alike:
    """Nodes with the same message, apart from their own names and addresses."""

    texts: Mapping[str, str]
    """The message of each."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(self.texts)

    @property
    def text(self) -> str:
        """The first one's message."""
        return next(iter(self.texts.values()))

    @property
    def same(self) -> bool:
        """Whether the others have exactly that message."""
        return len(set(self.texts.values())) == 1


def alike(texts: Mapping[str, str]) -> list[Alike]:
    """Nodes by text; texts that differ only in the node's own name and in addresses are put together."""
    groups: dict[str, dict[str, str]] = {}
    for node, text in texts.items():
        own = re.sub(rf"(?<![\w-]){re.escape(node)}(?![\w-])", "\0", text)
        groups.setdefault(_ADDRESS.sub("\1", own), {})[node] = text
    return [Alike(group) for group in groups.values()]


def failures(plan: PlanResult) -> dict[bool, list[Alike]]:
    """Nodes whose plan is not known, by whether they were unreachable."""
    texts: dict[bool, dict[str, str]] = {}
    for node in plan.failed:
        texts.setdefault(node.unreachable, {})[node.node] = node.error or ""
    return {unreachable: alike(of_nodes) for unreachable, of_nodes in texts.items()}


def notes(plan: PlanResult) -> list[Alike]:
    """Notes on the evaluation, e.g. no python3, with their nodes."""
    return alike(
        {node.node: node.note for node in plan.nodes.values() if node.note is not None and node.error is None}
    )


def reboots(plan: PlanResult, *, every: bool = False) -> dict[tuple[str, int], list[str]]:
    """Nodes by (what only a reboot brings, how many operations wait for it).

    Many different values for the same reason are one group with an example, unless `every`.
    """
    reasons: dict[tuple[tuple[str, ...], int], dict[str, list[str]]] = {}
    for name, changes in plan.reboots.items():
        reason = (tuple(change.target for change in changes), len(plan.nodes[name].after_reboot))
        reasons.setdefault(reason, {}).setdefault(changes_text(changes), []).append(name)
    found: dict[tuple[str, int], list[str]] = {}
    for (_, waiting), texts in reasons.items():
        if every or len(texts) <= _REBOOT_TEXTS:
            found.update({(text, waiting): nodes for text, nodes in texts.items()})
        else:
            text = f"{len(texts)} variants, one of them: {max(texts, key=lambda each: len(texts[each]))}"
            found[text, waiting] = [node for nodes in texts.values() for node in nodes]
    return found
