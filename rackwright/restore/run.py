"""Putting a backup back on a head: asked for, agreed to, done in steps that can be repeated.

1  the head is compared with the backup: each part has its program there, what would be destroyed is listed
2  the units that use the state are kept from starting, and stopped, on every node that has one
3  each part is streamed to the head, and put back once it arrived whole
4  the units may start again, and are started in their order; each has to answer
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

from rackwright.boundary import printable
from rackwright.engine.head_lock import HeadLock
from rackwright.engine.journal import Journal
from rackwright.engine.run_lock import run_lock, who
from rackwright.errors import ConnectionFailed, RestoreError
from rackwright.model.backups import BackupPart, overwritten, parts_of, stopped_units
from rackwright.model.cluster import Cluster, Node
from rackwright.restore.copy import Opened, fetch, local, opened
from rackwright.restore.node import Listing, Nodes

_ANSWER_SECONDS = 120
_LINES_MAX = 20
Notice = Callable[[str], None]


@dataclass(frozen=True)
class Restoring:
    """What an operator agrees to."""

    cluster: Cluster
    node: str
    backup: str
    parts: tuple[BackupPart, ...]
    stopped: tuple[tuple[str, str], ...]
    """Node and unit, in the order in which they start again."""
    destroyed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What is on nodes and in no backup, by node."""
    unknown: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What could not be found out about that, by node."""
    unfinished: bool = False
    """An earlier restore was interrupted: what it left is replaced."""

    @property
    def needs_typing(self) -> bool:
        """Whether state would be destroyed, or may be."""
        return not self.unfinished and bool(self.destroyed or self.unknown)


@dataclass(frozen=True)
class Restored:
    """What was done."""

    backup: str
    parts: tuple[str, ...]
    """One line each."""


def restore(
    cluster: Cluster,
    node: Node,
    source: str | None,
    *,
    agree: Callable[[Restoring], bool],
    notice: Notice = lambda text: None,
) -> Restored | None:
    """Put a backup back on a head; safe to run again after it was interrupted. None: it was declined.

    + source: a name in the node's place, or a folder of this machine, with a slash in it; None: the newest
    """
    journal = Journal(
        cluster.name, cluster.path, limit=node.name, roles=None
    )  # for the name of the run alone
    lost: list[str] = []
    with (
        run_lock(cluster.name),
        HeadLock(cluster, {"run": journal.run, **who()}, lost=lost.append, notice=notice),
        Nodes(cluster) as nodes,
        tempfile.TemporaryDirectory(prefix="rackwright-restore-") as scratch,
    ):
        found = _found(cluster, node, source, nodes)
        parts = _parts(cluster, node, found.manifest)
        restoring = _compared(cluster, node, found.manifest, parts, nodes)
        if not agree(restoring):
            return None
        folder = found.folder
        if folder is None:
            folder = fetch(nodes, node.name, found.place, found.manifest, Path(scratch), notice)
        notice(f"decrypting {restoring.backup} as a trial")
        ready = [(part, opened(folder, part.to_json())) for part in parts]
        now = _compared(cluster, node, found.manifest, parts, nodes)
        if now.needs_typing and not restoring.needs_typing:
            raise RestoreError(
                f"{node.name} has come into use meanwhile. Nothing was changed.",
                hint="run it again, and see what it lists",
            )
        if lost:
            raise RestoreError(
                f"Another run took the lock of {cluster.name}: {lost[0]}. Nothing was changed."
            )
        return _Work(cluster, node, nodes, found.manifest, notice).put_back(ready)


def available(cluster: Cluster, node: Node) -> Listing:
    """A head's backups."""
    with Nodes(cluster) as nodes:
        return nodes.backups(node.name)


def fetch_backup(cluster: Cluster, node: Node, name: str | None, into: Path, notice: Notice) -> Path:
    """Copy a backup, the newest without a name, to a new folder below `into`, still encrypted."""
    with Nodes(cluster) as nodes:
        listing = nodes.backups(node.name)
        return fetch(nodes, node.name, listing.place, _named(listing, node, name), into, notice)


def _named(listing: Listing, node: Node, name: str | None) -> dict[str, Any]:
    found = [one for one in listing.backups if name is None or one["name"] == name]
    if not found:
        what = "no backup" if name is None else f"no backup {printable(name, 80)}"
        newest = (
            f"the newest is {listing.backups[0]['name']}"
            if listing.backups
            else "restore a copy: --from FOLDER"
        )
        raise RestoreError(f"{listing.place} of {node.name} has {what}.", hint=newest)
    return found[0]


@dataclass(frozen=True)
class _Found:
    """A backup, in a folder of this machine or in the place of the node."""

    manifest: dict[str, Any]
    place: str = ""
    folder: Path | None = None


def _found(cluster: Cluster, node: Node, source: str | None, nodes: Nodes) -> _Found:
    if source is not None and "/" in source:
        backup = local(Path(source))
        found = _Found({**backup.manifest, "name": backup.name}, folder=Path(source).resolve())
    else:
        listing = nodes.backups(node.name)
        found = _Found(_named(listing, node, source), place=listing.place)
    for key, ours in (("cluster", cluster.name), ("node", node.name)):
        if found.manifest[key] != ours:
            raise RestoreError(
                f"The backup {found.manifest['name']} is of {key} {printable(found.manifest[key], 80)}, not of {ours}.",
                hint="`rackwright restore FILE --list` shows those of this node",
            )
    return found


def _parts(cluster: Cluster, node: Node, manifest: dict[str, Any]) -> tuple[BackupPart, ...]:
    """What is put back: all that is declared. Half of it would not fit together."""
    declared = tuple(part for part in parts_of(cluster, node) if part.restorable)
    there = {part["name"] for part in manifest["parts"]}
    if missing := [part.about for part in declared if part.name not in there]:
        raise RestoreError(
            f"The backup {manifest['name']} lacks what {node.name} is declared to have: {', '.join(missing)}.",
            hint="use a backup that has it: rackwright restore FILE --list",
        )
    if not declared:
        raise RestoreError(f"No role of {node.name} has anything to put back.")
    return declared


def _compared(
    cluster: Cluster, node: Node, manifest: dict[str, Any], parts: tuple[BackupPart, ...], nodes: Nodes
) -> Restoring:
    unfinished = bool(nodes.state(node.name))
    for part in parts:
        status, _, said = nodes.ask(node.name, part.ready)
        if status != 0:
            raise RestoreError(
                f"{node.name} cannot take back the {part.about}: {said}.",
                hint=f"apply first, so that the programs are there: rackwright apply {cluster.path}",
            )
    destroyed: dict[str, tuple[str, ...]] = {}
    unknown: dict[str, tuple[str, ...]] = {}
    stopped = [(one.name, unit.unit) for one, unit in stopped_units(cluster)]
    for name in dict.fromkeys([node.name, *(one for one, _ in stopped)]):
        for about, command in overwritten(cluster, cluster.by_name[name]).items():
            status, out, said = nodes.ask(name, command)
            lines = tuple(printable(line, 200) for line in out.splitlines()[:_LINES_MAX] if line.strip())
            if status != 0:
                unknown[name] = (*unknown.get(name, ()), f"{about}: {said}")
            elif lines:
                destroyed[name] = (*destroyed.get(name, ()), *lines)
    return Restoring(
        cluster, node.name, str(manifest["name"]), parts, tuple(stopped), destroyed, unknown, unfinished
    )


@dataclass(frozen=True)
class _Work:
    """The steps that change nodes."""

    cluster: Cluster
    node: Node
    nodes: Nodes
    manifest: dict[str, Any]
    notice: Notice

    def put_back(self, ready: list[tuple[BackupPart, Opened]]) -> Restored:
        units: dict[str, list[str]] = {self.node.name: []}
        for one, unit in stopped_units(self.cluster):
            units.setdefault(one.name, []).append(unit.unit)
        for name, stopped in units.items():
            self.notice(f"{name}: stopping {', '.join(stopped) or 'nothing'}")
            step = {
                "step": "begin",
                "units": stopped,
                "backup": self.manifest["name"],
                "node": self.node.name,
            }
            self.nodes.step(name, step)
        done = [self._part(part, content) for part, content in ready]
        for name, stopped in units.items():
            self.nodes.step(name, {"step": "end", "units": stopped})
        self._start()
        for name in units:
            of = self.manifest["installation"] if name == self.node.name else None
            self.nodes.step(name, {"step": "done", "installation": of})
        return Restored(str(self.manifest["name"]), tuple(done))

    def _part(self, part: BackupPart, content: Opened) -> str:
        self.notice(f"{self.node.name}: putting back the {part.about}, {content.size} bytes compressed")
        step = {"step": "part", "part": part.to_json(), "size": content.size, "sha256": content.sha256}
        return f"{part.about}: {self.nodes.put_back(self.node.name, step, content.chunks())}"

    def _start(self) -> None:
        for one, unit in stopped_units(self.cluster):
            self.notice(f"{one.name}: starting {unit.unit}")
            status, _, said = self.nodes.ask(one.name, f"systemctl start {quote(unit.unit)}")
            if status == 0:
                status, said = self._answers(one.name, unit.answers)
            if status != 0:
                raise RestoreError(
                    f"{one.name}: everything was put back, and {unit.unit} does not serve: {said}.",
                    hint=f"see `journalctl -u {unit.unit}` there, then run the restore again",
                )

    def _answers(self, node: str, command: str) -> tuple[int, str]:
        deadline = time.monotonic() + _ANSWER_SECONDS
        while True:
            try:
                status, _, said = self.nodes.ask(node, command)
            except ConnectionFailed as error:
                status, said = 1, error.message.rstrip(".")
            if status == 0 or time.monotonic() > deadline:
                return status, said
            time.sleep(2)
