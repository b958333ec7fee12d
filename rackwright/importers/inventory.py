"""A static Ansible inventory as plain data: hosts, groups, and variables with the place of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from rackwright.importers.records import MAX_NODES, quoted

_RANGE = re.compile(r"\[([^\[\]:]*):([^\[\]:]*)(?::(\d+))?\]")
_WHOLE_RANGE = re.compile(r"[^\[\]]*(\[[^\[\]]*\][^\[\]]*)*")


class Encrypted:
    """Stands for a value that is encrypted with Ansible Vault, and is never read."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable's value, as YAML or the inventory has it, and where it is."""

    value: object
    where: str


Variables = dict[str, Variable]


@dataclass
class InventoryGroup:
    """One group: what is directly in it."""

    name: str
    hosts: dict[str, str] = field(default_factory=dict)
    """Host to the place that puts it here."""
    children: dict[str, str] = field(default_factory=dict)
    variables: Variables = field(default_factory=dict)


@dataclass
class Inventory:
    """Everything that the files of an inventory hold."""

    groups: dict[str, InventoryGroup] = field(default_factory=dict)
    hosts: dict[str, tuple[str, Variables]] = field(default_factory=dict)
    """Host to where it is first named, and its own variables; in the order of the files."""
    ignored: list[str] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)

    def group(self, name: str) -> InventoryGroup:
        """The group of a name, made where it does not exist."""
        return self.groups.setdefault(name, InventoryGroup(name))

    def add_hosts(self, pattern: str, group: str, variables: Variables, where: str) -> None:
        """Put the hosts of a pattern, `node[001:016]`, into a group; a pattern that cannot be read is a mistake."""
        try:
            names = expand_hosts(pattern)
        except ValueError as error:
            self.mistakes.append(f"{where}: {quoted(pattern)}: {error}")
            return
        if len(self.hosts) + len(names) > MAX_NODES:
            self.mistakes.append(
                f"{where}: {quoted(pattern)}: with it the inventory has more than {MAX_NODES} hosts."
            )
            return
        for name in names:
            self.group(group).hosts.setdefault(name, where)
            self.hosts.setdefault(name, (where, {}))[1].update(variables)

    def depths(self) -> dict[str, int]:
        """Each group with how far it is below `all`; a circle of groups is a mistake."""
        depth = dict.fromkeys(self.groups, 1)
        for _ in range(len(self.groups) + 1):
            changed = False
            for group in self.groups.values():
                for child in group.children:
                    if depth.get(child, 0) <= depth[group.name]:
                        depth[child], changed = depth[group.name] + 1, True
            if not changed:
                return {**depth, "all": 0}
        self.mistakes.append("Groups are children of each other in a circle.")
        return depth

    def members(self) -> dict[str, set[str]]:
        """Host to all groups that hold it, directly or through children; `all` left out."""
        parents: dict[str, set[str]] = {}
        for group in self.groups.values():
            for child in group.children:
                parents.setdefault(child, set()).add(group.name)
        found: dict[str, set[str]] = {name: set() for name in self.hosts}
        above = {name: _above(name, parents) for name in self.groups}
        for group in self.groups.values():
            for host in group.hosts:
                found[host] |= above[group.name] - {"all", "ungrouped"}
        return found


def _above(name: str, parents: dict[str, set[str]]) -> set[str]:
    found, new = {name}, [name]
    while new:
        for parent in parents.get(new.pop(), ()):
            if parent not in found:
                found.add(parent)
                new.append(parent)
    return found


def expand_hosts(pattern: str) -> list[str]:
    """The hosts of a pattern: numbers keep the width of the first, `[a:f]` are letters, a third part is the step.

    Raises ValueError with a full sentence.
    """
    if not _WHOLE_RANGE.fullmatch(pattern):
        raise ValueError("The brackets do not match.")
    match = _RANGE.search(pattern)
    if match is None:
        if "[" in pattern:
            raise ValueError("A range has two ends, e.g. `node[001:016]`.")
        return [pattern]
    found: list[str] = []
    for rest in expand_hosts(pattern[match.end() :]):
        for one in _steps(match[1] or "0", match[2], int(match[3] or 1)):
            if len(found) >= MAX_NODES:
                raise ValueError(f"The range has more than {MAX_NODES} hosts.")
            found.append(f"{pattern[: match.start()]}{one}{rest}")
    return sorted(found, key=lambda name: (len(name), name)) if _RANGE.search(pattern, match.end()) else found


def _steps(first: str, last: str, step: int) -> Iterator[str]:
    if step < 1:
        raise ValueError("The step of a range is at least 1.")
    if first.isascii() and last.isascii() and first.isdigit() and last.isdigit():
        if first.startswith("0") and len(first) > 1 and len(first) != len(last):
            raise ValueError("The ends of the range differ in width.")
        if int(first) > int(last):
            raise ValueError("The range runs backwards.")
        width = len(first) if first.startswith("0") else 0
        return (str(number).zfill(width) for number in range(int(first), int(last) + 1, step))
    if re.fullmatch("[a-z]", first) and re.fullmatch("[a-z]", last) and first <= last:
        return (chr(code) for code in range(ord(first), ord(last) + 1, step))
    raise ValueError("The ends of a range are two numbers or two lower-case letters.")
