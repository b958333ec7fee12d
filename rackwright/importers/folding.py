"""Nodes as groups of the cluster file: ranges and first addresses, only where counting on gives precisely the source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rackwright.importers.resolve import Found
from rackwright.model.ranges import expand

_LAST_NUMBER = re.compile(r"^(.*?)(\d+)(\D*)$")
_RANK = {"head": 0, "login": 1, "storage": 2, "worker": 3}
_STEP, _POSITION_STEP = 65536, 50


@dataclass(frozen=True)
class Rule:
    """Values that count on from a first one."""

    first: int
    step: int = 1


@dataclass(frozen=True)
class Folded:
    """One group: what its nodes share, and the rules that give what they do not."""

    nodes: tuple[Found, ...]
    names: str
    rack: str | None
    switch: tuple[str, ...]
    address: Rule | None
    bmc: Rule | None
    position: Rule | None

    @property
    def first(self) -> Found:
        """The first node, which has what all share."""
        return self.nodes[0]


def fold_nodes(nodes: Sequence[Found]) -> list[Folded]:
    """All nodes in groups: heads first, then by name; each group's rules give the values of its nodes precisely."""
    ordered = sorted(nodes, key=lambda node: (_rank(node), _natural(node.name)))
    runs: list[list[Found]] = []
    for node in ordered:
        if runs and _continues(runs[-1], node):
            runs[-1].append(node)
        else:
            runs.append([node])
    return _over_racks([_folded(run) for run in runs])


def _rank(node: Found) -> int:
    return min((_RANK[role] for role in node.roles), default=len(_RANK))


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _alike(node: Found) -> tuple[object, ...]:
    """What the nodes of a group have in common."""
    has = (
        node.address is None,
        node.bmc is None,
        node.mac is None,
        node.serial is None,
        node.position is None,
    )
    why = tuple(node.missing.get(key) for key in ("roles", "os", "sku"))
    return (node.roles, node.os, node.sku, node.primary, has, why)


def _continues(run: list[Found], node: Found) -> bool:
    """Whether a node is the next one of a group."""
    last = run[-1]
    if _alike(last) != _alike(node) or (last.rack, last.switch) != (node.rack, node.switch):
        return False
    if not _is_next(last.name, node.name):
        return False
    members = [*run[-2:], node]  # the run itself counts on already
    return all(
        _rule([value(one) for one in members], most) is not None
        for value, most in ((_address, _STEP), (_bmc, _STEP), (_position, _POSITION_STEP))
        if value(node) is not None
    )


def _address(node: Found) -> int | None:
    return None if node.address is None else int(node.address.ip)


def _bmc(node: Found) -> int | None:
    return None if node.bmc is None else int(node.bmc.ip)


def _position(node: Found) -> int | None:
    return node.position


def _rule(values: Sequence[int | None], most: int) -> Rule | None:
    """The rule that gives the values in their order; None: there is none, or a value is missing."""
    numbers = [value for value in values if value is not None]
    if not numbers or len(numbers) < len(values):
        return None
    if len(numbers) == 1:
        return Rule(numbers[0])
    step = numbers[1] - numbers[0]
    counted = all(after - before == step for before, after in pairwise(numbers))
    return Rule(numbers[0], step) if counted and 1 <= step <= most else None


def _is_next(one: str, other: str) -> bool:
    """Whether a name is another one with its last number counted on, as a range has it."""
    first, second = _LAST_NUMBER.match(one), _LAST_NUMBER.match(other)
    if first is None or second is None or (first[1], first[3]) != (second[1], second[3]):
        return False
    width = len(first[2]) if first[2].startswith("0") or len(first[2]) == len(second[2]) else 0
    return second[2] == str(int(first[2]) + 1).zfill(width)


def _range(names: Sequence[str]) -> str:
    """Consecutive names as a range, `gpu[001-016]`."""
    first, last = _LAST_NUMBER.match(names[0]), _LAST_NUMBER.match(names[-1])
    if len(names) == 1 or first is None or last is None:
        return names[0]
    return f"{first[1]}[{first[2]}-{last[2]}]{first[3]}"


def _folded(nodes: Sequence[Found]) -> Folded:
    first = nodes[0]
    return Folded(
        nodes=tuple(nodes),
        names=_range([node.name for node in nodes]),
        rack=first.rack,
        switch=first.switch,
        address=_rule([_address(node) for node in nodes], _STEP),
        bmc=_rule([_bmc(node) for node in nodes], _STEP),
        position=_rule([_position(node) for node in nodes], _POSITION_STEP),
    )


def _over_racks(groups: list[Folded]) -> list[Folded]:
    """Groups that differ in the rack alone and fill racks in order, as one: `rack: rack[1-4]`."""
    found: list[Folded] = []
    at = 0
    while at < len(groups):
        end = at + 1
        while end < len(groups) and _joined(groups[at : end + 1]) is not None:
            end += 1
        found.append(_joined(groups[at:end]) or groups[at])
        at = end
    return found


def _joined(groups: Sequence[Folded]) -> Folded | None:
    """The groups as one; None where its rules would not give each node what the source has."""
    if len(groups) == 1:
        return groups[0]
    first, nodes = groups[0], [node for group in groups for node in group.nodes]
    racks, leaves = [group.rack for group in groups], [group.switch for group in groups]
    same = all(
        len(group.nodes) == len(first.nodes)
        and _alike(group.first) == _alike(first.first)
        and group.position == first.position
        for group in groups
    )
    rack = _spread([rack for rack in racks if rack is not None])
    switch = first.switch if len({*leaves}) == 1 else _spread_leaves(leaves)
    names = [node.name for node in nodes]
    if not same or None in racks or rack is None or switch is None:
        return None
    if not all(_is_next(one, other) for one, other in pairwise(names)):
        return None
    whole = _folded(nodes)
    for value, rule in ((_address, whole.address), (_bmc, whole.bmc)):
        if value(nodes[0]) is not None and rule is None:
            return None
    return replace(whole, rack=rack, switch=switch, position=first.position)


def _spread(names: Sequence[str]) -> str | None:
    """Different names in order as a range that gives them so; None where there is none."""
    if not names or not all(_is_next(one, other) for one, other in pairwise(names)):
        return None
    text = _range(names)
    return text if expand(text) == tuple(names) else None


def _spread_leaves(leaves: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """One leaf for each rack, counted on with the racks."""
    text = _spread([leaf[0] for leaf in leaves]) if all(len(leaf) == 1 for leaf in leaves) else None
    return None if text is None else (text,)
