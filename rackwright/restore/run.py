"""Restores backups to heads: planned, confirmed, then done in repeatable steps.

1  each head is compared with its backup: the programs are there, what would be destroyed is listed
2  the backups are fetched, and decrypted as a trial
3  the units that use the state are kept from starting, and stopped, on every node that has one
4  each part is streamed to its head, and put back once it arrived whole
5  the units may start again, and are started in their order; each has to answer

A run that is interrupted during step 5 is finished by repeating that step alone: jobs may have been submitted since.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from rackwright.engine.head_lock import HeadLock
from rackwright.engine.journal import Journal
from rackwright.engine.run_lock import run_lock, who
from rackwright.errors import ConnectionFailed, RestoreError
from rackwright.model.backups import BackupPart, stopped_units
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.restore.copy import Opened, fetch, opened
from rackwright.restore.node import Listing, Nodes
from rackwright.restore.targets import Restoring, Target, compared, find_targets, named
from rackwright.state_folder import state_folder

_ANSWER_SECONDS = 120
Notice = Callable[[str], None]


@dataclass(frozen=True)
class Restored:
    """What was done."""

    lines: tuple[str, ...]
    """One for each part, or for each head where only the units were left to start."""


def restore(
    cluster: Cluster,
    heads: Sequence[Node],
    source: str | None,
    *,
    agree: Callable[[Restoring], bool],
    notice: Notice = lambda text: None,
) -> Restored | None:
    """Put backups back on heads; safe to run again after it was interrupted. None: it was declined.

    + source: a name in the place of the one head, or a folder of this machine, with a slash in it; None: the newest
    """
    limit = fold([node.name for node in heads])
    run = Journal(
        cluster.name, cluster.path, limit=limit, roles=None
    ).run  # the lock is held by a name of a run
    lost: list[str] = []
    with (
        run_lock(cluster.name),
        HeadLock(cluster, {"run": run, **who()}, lost=lost.append, notice=notice),
        Nodes(cluster) as nodes,
        tempfile.TemporaryDirectory(prefix="restore-", dir=state_folder(cluster.name)) as scratch,
    ):
        targets = find_targets(cluster, heads, source, nodes)
        restoring = compared(cluster, targets, nodes)
        if not agree(restoring):
            return None
        if restoring.finishes:
            return _Work(cluster, nodes, notice, lost).finish(targets)
        ready = [(target, _opened(target, nodes, Path(scratch), notice)) for target in targets]
        if compared(cluster, targets, nodes).needs_typing and not restoring.needs_typing:
            raise RestoreError(
                f"{limit} is now in use. Nothing was changed.",
                hint="run it again and check what it lists",
            )
        return _Work(cluster, nodes, notice, lost).put_back(ready)


def available(cluster: Cluster, node: Node) -> Listing:
    """A head's backups."""
    with Nodes(cluster) as nodes:
        return nodes.backups(node.name)


def fetch_backup(cluster: Cluster, node: Node, name: str | None, into: Path, notice: Notice) -> Path:
    """Copy a backup, the newest without a name, to a new folder below `into`, still encrypted."""
    with Nodes(cluster) as nodes:
        listing = nodes.backups(node.name)
        return fetch(nodes, node.name, listing.place, named(listing, node, name), into, notice)


Ready = list[tuple[BackupPart, Opened]]


def _opened(target: Target, nodes: Nodes, scratch: Path, notice: Notice) -> Ready:
    folder = target.folder
    if folder is None:
        folder = fetch(nodes, target.node.name, target.place, target.manifest, scratch, notice)
    notice(f"test-decrypting {target.backup}")
    return [(part, opened(folder, part.to_json())) for part in target.parts]


@dataclass(frozen=True)
class _Work:
    """The steps that change nodes."""

    cluster: Cluster
    nodes: Nodes
    notice: Notice
    lost: list[str]
    """Why another run has the lock, once that is so."""

    def put_back(self, ready: list[tuple[Target, Ready]]) -> Restored:
        targets = tuple(target for target, _ in ready)
        for name, stopped in self._units(targets).items():
            self._still_locked()
            self.notice(f"{name}: stopping {', '.join(stopped) or 'nothing'}")
            self.nodes.step(name, {"step": "begin", "units": stopped, "run": [one.backup for one in targets]})
        lines = [self._part(target, part, content) for target, parts in ready for part, content in parts]
        self._end(targets)
        return Restored(tuple(lines))

    def finish(self, targets: tuple[Target, ...]) -> Restored:
        """What was left to do once every part was put back."""
        self._still_locked()
        self._end(targets)
        return Restored(
            tuple(f"{one.node.name}: {one.backup} was restored earlier; units started" for one in targets)
        )

    def _units(self, targets: tuple[Target, ...]) -> dict[str, list[str]]:
        """Units to stop by node, for every node that takes part."""
        units: dict[str, list[str]] = {target.node.name: [] for target in targets}
        for node, unit in stopped_units(self.cluster):
            units.setdefault(node.name, []).append(unit.unit)
        return units

    def _end(self, targets: tuple[Target, ...]) -> None:
        units, backups = self._units(targets), {target.node.name: target for target in targets}
        for name, stopped in units.items():
            self.nodes.step(name, {"step": "end", "units": stopped})
        self._start()
        for name in units:
            made_by = backups[name].manifest["installation"] if name in backups else None
            self.nodes.step(name, {"step": "done", "installation": made_by})

    def _still_locked(self) -> None:
        if self.lost:
            raise RestoreError(
                f"Another run took the lock of {self.cluster.name}: {self.lost[0].rstrip('.')}.",
                hint="run the restore again once that has ended",
            )

    def _part(self, target: Target, part: BackupPart, content: Opened) -> str:
        self._still_locked()
        name = target.node.name
        self.notice(f"{name}: restoring {part.about}, {content.size} bytes compressed")
        step = {"step": "part", "part": part.to_json(), "size": content.size, "sha256": content.sha256}
        return f"{name}: {part.about}: {self.nodes.put_back(name, step, content.chunks())}"

    def _start(self) -> None:
        for node, unit in stopped_units(self.cluster):
            self.notice(f"{node.name}: starting {unit.unit}")
            status, _, answer = self.nodes.ask(node.name, f"systemctl start {quote(unit.unit)}")
            if status == 0:
                status, answer = self._answers(node.name, unit.answers)
            if status != 0:
                raise RestoreError(
                    f"{node.name}: everything was restored, but {unit.unit} does not respond: {answer}.",
                    hint=f"see `journalctl -u {unit.unit}` there, then run the same restore again, which only starts the units",
                )

    def _answers(self, node: str, command: str) -> tuple[int, str]:
        deadline = time.monotonic() + _ANSWER_SECONDS
        while True:
            try:
                status, _, answer = self.nodes.ask(node, command)
            except ConnectionFailed as error:
                status, answer = 1, error.message.rstrip(".")
            if status == 0 or time.monotonic() > deadline:
                return status, answer
            time.sleep(2)
