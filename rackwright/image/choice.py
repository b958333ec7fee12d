"""Which operations of a group's nodes go into their image: accounts, packages, and what packages need first.

All else is left to the first run on the node: what is secret, what differs between nodes, units, and
operations that query a running kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rackwright.model.cluster import Cluster, Node
from rackwright.plan.changes import MASK, Change
from rackwright.plan.node_plan import PlannedOperation

_INSTALLED = {"user", "group", "package"}
_WRITTEN = {"file", "directory"}
_NEEDED_FIRST = (
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d",
    "/etc/apt/preferences.d",
    "/etc/apt/keyrings",
    "/etc/apt/trusted.gpg.d",
    "/usr/share/keyrings",
    "/etc/modprobe.d",
    "/etc/initramfs-tools",
    "/etc/dkms",
    "/etc/default/grub.d",
)
"""Files and folders that packages read while they are installed; without /etc/apt/apt.conf.d, whose proxy is the
node's, and /etc/apt/auth.conf.d, whose passwords are secret."""
_BUILT = re.compile(r"DKMS module |initramfs$")
"""Settings that need no running kernel: what is compiled for the kernel in the image, and its initramfs."""
_ACCESS = re.compile(r"(?:file|directory) (?P<mode>[0-7]{1,4}) (?P<owner>[^ :,]+):(?P<group>[^ :,]+)")
_HIDDEN = re.compile(r"\*MASKED\*|\*{3,}")
EVALUATED_MAX = 32
"""Nodes of a group that are evaluated; half a second each."""


@dataclass(frozen=True, slots=True)
class Written:
    """A file or, without content, a folder, as an operation leaves it."""

    path: str
    mode: int
    owner: str
    group: str
    content: str | None


@dataclass(frozen=True, slots=True)
class BuildStep:
    """One operation that is carried out in the tree: commands, or files."""

    role: str
    name: str
    commands: tuple[str, ...] = ()
    files: tuple[Written, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """What goes into an image, in the order of the deploy, and what the first run does, by role."""

    steps: tuple[BuildStep, ...]
    left: dict[str, tuple[str, ...]]
    """Role -> operations left to the first run on a node."""
    differing: dict[str, tuple[str, ...]]
    """Those that would be in the image but are not the same on all nodes; they are part of `left` too."""
    units: tuple[str, ...] = ()
    """Units that the first run on a node enables, once they are configured."""


def alike(cluster: Cluster, nodes: Sequence[Node]) -> tuple[Node, ...]:
    """All nodes that share an image with the only node given; several nodes are a group as they stand."""
    if len(nodes) != 1:
        return tuple(nodes)
    return tuple(node for node in cluster.nodes if _kind(node) == _kind(nodes[0]))


def groups(nodes: Iterable[Node]) -> list[tuple[Node, ...]]:
    """Nodes that share an image, in file order."""
    found: list[list[Node]] = []
    for node in nodes:
        for group in found:
            if _kind(group[0]) == _kind(node):
                group.append(node)
                break
        else:
            found.append([node])
    return [tuple(group) for group in found]


def evaluated(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """A sample of a large group: the first, the last, and others spread evenly."""
    if len(nodes) <= EVALUATED_MAX:
        return tuple(nodes)
    last = len(nodes) - 1
    return tuple(nodes[place * last // (EVALUATED_MAX - 1)] for place in range(EVALUATED_MAX))


def choose(plans: Sequence[Sequence[PlannedOperation]]) -> Choice:
    """What the operations of a group's nodes have in common and can be done without a node."""
    first, others = plans[0], plans[1:]
    everywhere = [{_step(operation) for operation in plan} for plan in others]
    steps: list[BuildStep] = []
    left: dict[str, list[str]] = {}
    differing: dict[str, list[str]] = {}
    for operation in first:
        step = _step(operation)
        if step is not None and all(step in there for there in everywhere):
            steps.append(step)
            continue
        left.setdefault(operation.role, []).append(operation.name)
        if step is not None:
            differing.setdefault(operation.role, []).append(operation.name)
    _add_of_others(others, set(steps), left, differing)
    return Choice(tuple(steps), _unique(left), _unique(differing), _units(plans))


def _units(plans: Sequence[Sequence[PlannedOperation]]) -> tuple[str, ...]:
    found = {
        change.target
        for plan in plans
        for operation in plan
        for change in operation.changes
        if change.kind == "unit" and change.target.endswith(".service")
    }
    return tuple(sorted(found))


def _add_of_others(
    others: Sequence[Sequence[PlannedOperation]],
    taken: set[BuildStep],
    left: dict[str, list[str]],
    differing: dict[str, list[str]],
) -> None:
    for plan in others:
        for operation in plan:
            step = _step(operation)
            if step in taken:
                continue
            left.setdefault(operation.role, []).append(operation.name)
            if step is not None:
                differing.setdefault(operation.role, []).append(operation.name)


def _unique(lists: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {role: tuple(dict.fromkeys(names)) for role, names in lists.items()}


def _kind(node: Node) -> object:
    return (node.roles, node.sku, node.os, node.platform, node.mig, node.options)


def _step(operation: PlannedOperation) -> BuildStep | None:
    """The operation as a step of an image; None: it is left to the node."""
    if not operation.changes or _is_secret(operation):
        return None
    kinds = {change.kind for change in operation.changes}
    if kinds <= _INSTALLED or all(_is_built(change) for change in operation.changes):
        return BuildStep(operation.role, operation.name, commands=operation.commands)
    if kinds <= _WRITTEN and all(_needed_first(change.target) for change in operation.changes):
        files = [_written(change) for change in operation.changes]
        if None not in files:
            return BuildStep(
                operation.role, operation.name, files=tuple(file for file in files if file is not None)
            )
    return None


def _is_secret(operation: PlannedOperation) -> bool:
    """A secret is masked wherever a plan shows it: in what changes by us, in commands by pyinfra."""
    if any(_HIDDEN.search(command) for command in operation.commands):
        return True
    shown = [text for change in operation.changes for text in (change.target, change.before, change.after)]
    return any(text is not None and MASK in text for text in shown)


def _is_built(change: Change) -> bool:
    return change.kind == "setting" and _BUILT.match(change.target) is not None


def _needed_first(path: str) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in _NEEDED_FIRST)


def _written(change: Change) -> Written | None:
    match = _ACCESS.fullmatch(change.after or "")
    if match is None or (change.kind == "file") != (change.content is not None):
        return None
    return Written(change.target, int(match["mode"], 8), match["owner"], match["group"], change.content)
