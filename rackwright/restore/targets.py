"""Which backup goes to which head, and the current state of the heads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any

from rackwright.backup import places
from rackwright.backup.catalogue import made
from rackwright.boundary import printable
from rackwright.errors import RestoreError
from rackwright.model.backups import BackupPart, overwritten, parts_of, stopped_units
from rackwright.model.cluster import Cluster, Node
from rackwright.restore.copy import local
from rackwright.restore.node import Listing, Nodes

_LINES_MAX = 20
_CLOCK_SKEW_SECONDS = 300


@dataclass(frozen=True)
class Target:
    """A head and the backup that is put back on it."""

    node: Node
    manifest: dict[str, Any]
    parts: tuple[BackupPart, ...]
    place: str = ""
    """Folder of the head that the backup is in."""
    folder: Path | None = None
    """Folder of this machine that the backup is in, in place of `place`."""

    @property
    def backup(self) -> str:
        """The backup's name."""
        return str(self.manifest["name"])


@dataclass(frozen=True)
class Restoring:
    """What an operator agrees to."""

    cluster: Cluster
    targets: tuple[Target, ...]
    stopped: tuple[tuple[str, str], ...]
    """Node and unit, in the order in which they start again."""
    destroyed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What is on nodes and in no backup, by node."""
    unknown: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What could not be found out about that, by node."""
    unfinished: tuple[str, ...] = ()
    """Nodes on which an earlier restore was interrupted."""
    finishes: bool = False
    """An earlier run put all of this back: only its units are started, and nothing is overwritten."""

    @property
    def needs_typing(self) -> bool:
        """Whether state would be destroyed, or may be."""
        return bool(self.destroyed or self.unknown)


def heads_with_state(cluster: Cluster) -> tuple[Node, ...]:
    """Nodes that have something to put back."""
    return tuple(node for node in cluster.nodes if any(part.restorable for part in parts_of(cluster, node)))


def find_targets(
    cluster: Cluster, heads: Sequence[Node], source: str | None, nodes: Nodes
) -> tuple[Target, ...]:
    """The backup of each head: the newest, or the named one where there is one head."""
    if source is not None and len(heads) > 1:
        raise RestoreError(
            f"--from names one backup, but {len(heads)} heads would be restored.",
            hint=f"also name the head: --node {heads[0].name}",
        )
    return tuple(_target(cluster, node, source, nodes) for node in heads)


def _target(cluster: Cluster, node: Node, source: str | None, nodes: Nodes) -> Target:
    place, folder = "", None
    if source is not None and "/" in source:
        backup = local(Path(source))
        folder, manifest = Path(source).resolve(), {**backup.manifest, "name": backup.name}
    else:
        listing = nodes.backups(node.name)
        place, manifest = listing.place, named(listing, node, source)
    for key, ours in (("cluster", cluster.name), ("node", node.name)):
        if manifest[key] != ours:
            raise RestoreError(
                f"The backup {manifest['name']} is of {key} {printable(manifest[key], 80)}, not of {ours}.",
                hint="`rackwright restore FILE --list` shows those of this cluster",
            )
    return Target(node, manifest, _parts(cluster, node, manifest), place, folder)


def named(listing: Listing, node: Node, name: str | None) -> dict[str, Any]:
    """The manifest of a backup in a head's place; None: of the newest, unless it is dated in the future."""
    found = [one for one in listing.backups if name is None or one["name"] == name]
    if not found:
        what = "no backup" if name is None else f"no backup {printable(name, 80)}"
        newest = [f"the newest is {one['name']}" for one in listing.backups[:1]]
        raise RestoreError(
            f"{listing.place} of {node.name} has {what}.",
            hint=(newest or ["restore a copy: --from FOLDER"])[0],
        )
    if name is None:
        _refuse_future(listing, node)
    return found[0]


def _refuse_future(listing: Listing, node: Node) -> None:
    """RestoreError where the newest backup was made while a clock was wrong: others may hold later state."""
    now = time.time()
    names = [str(one["name"]) for one in listing.backups]
    earlier = [name for name in names if made(name) <= now + _CLOCK_SKEW_SECONDS]
    if names[0] in earlier:
        return
    raise RestoreError(
        f"The newest backup of {node.name}, {names[0]}, is dated in the future: here it is "
        f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M} UTC.",
        hint=f"check the clocks, then name a backup, e.g. --node {node.name} --from {(earlier or names)[0]}, or move "
        f"{names[0]} out of {listing.place}",
    )


def _parts(cluster: Cluster, node: Node, manifest: dict[str, Any]) -> tuple[BackupPart, ...]:
    """What is put back: all that is declared. Half of it would not fit together."""
    declared = tuple(part for part in parts_of(cluster, node) if part.restorable)
    there = {part["name"] for part in manifest["parts"]}
    if missing := [part.about for part in declared if part.name not in there]:
        raise RestoreError(
            f"The backup {manifest['name']} lacks parts that {node.name} declares: {', '.join(missing)}.",
            hint="choose a backup that has them: rackwright restore FILE --list",
        )
    return declared


def compared(cluster: Cluster, targets: tuple[Target, ...], nodes: Nodes) -> Restoring:
    """What is on the nodes now; RestoreError where one cannot take its parts back."""
    for target in targets:
        for part in target.parts:
            status, _, answer = nodes.ask(target.node.name, part.ready)
            if status != 0:
                raise RestoreError(
                    f"{target.node.name} cannot restore {part.about}: {answer}.",
                    hint=f"apply first, to install the programs: rackwright apply {cluster.path}",
                )
    stopped = tuple((node.name, unit.unit) for node, unit in stopped_units(cluster))
    names = tuple(dict.fromkeys([*(target.node.name for target in targets), *(name for name, _ in stopped)]))
    states = {name: nodes.state(name) for name in names}
    unfinished = tuple(name for name in names if states[name])
    if _is_put_back(targets, states, nodes):
        return Restoring(cluster, targets, stopped, unfinished=unfinished, finishes=True)
    destroyed: dict[str, tuple[str, ...]] = {}
    unknown: dict[str, tuple[str, ...]] = {}
    # stopped on all nodes, nothing was added since; where one of them can run, it may have taken over for the others
    asked = () if all(state.get("stopped") is True for state in states.values()) else names
    for name in asked:
        for about, command in overwritten(cluster, cluster.by_name[name]).items():
            status, out, answer = nodes.ask(name, command)
            lines = tuple(printable(line, 200) for line in out.splitlines()[:_LINES_MAX] if line.strip())
            if status != 0:
                unknown[name] = (*unknown.get(name, ()), f"{about}: {answer}")
            elif lines:
                destroyed[name] = (*destroyed.get(name, ()), *lines)
    return Restoring(cluster, targets, stopped, destroyed, unknown, unfinished)


def _is_put_back(targets: tuple[Target, ...], states: dict[str, dict[str, Any]], nodes: Nodes) -> bool:
    """Whether an interrupted run of the same restore has put every part back, so that the units may run since."""
    run = [target.backup for target in targets]
    left = [state for state in states.values() if state]
    if not left or any(state.get("ended") is not True or state.get("run") != run for state in left):
        return False
    return all(states[target.node.name] or _goes_on(target, nodes) for target in targets)


def _goes_on(target: Target, nodes: Nodes) -> bool:
    """Whether a head without an unfinished restore is past its end, and not installed anew since."""
    installation = quote(str(target.manifest["installation"]))
    status, _, _ = nodes.ask(target.node.name, f"grep -qxF -e {installation} {places.INSTALLATION}")
    return status == 0
