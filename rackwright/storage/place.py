"""The bench's folder on a filesystem, and how nodes see the filesystem."""

from __future__ import annotations

import json
import posixpath
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rackwright.boundary import Refused, last_line
from rackwright.burnin.finding import Finding
from rackwright.errors import ConnectionFailed
from rackwright.model.ranges import fold
from rackwright.model.storage import Filesystem
from rackwright.node_programs import python_command
from rackwright.ssh import RootShell
from rackwright.ssh.side_by_side import side_by_side
from rackwright.status import Status
from rackwright.storage.received import LOOKED, Looked, result_of
from rackwright.storage.store import done, under_way, unfinished

PROGRAM = "rackwright.storage.programs.place"
ANSWERS_AT_ONCE = 64
START_SECONDS = 20
"""To start Python on a busy node."""
REMOVE_SECONDS = 300
"""A bench that was interrupted may have left a million files."""
HUNG_SECONDS = 60
"""To remove what is on a filesystem that did not answer before."""
STAT_SHARE = 4
"""A look is a few calls, each of which may take as long as a stat."""


@dataclass
class Place:
    """One filesystem, asked on nodes over ssh."""

    cluster: str
    one: Filesystem
    shell: RootShell
    time_factor: float = 1.0
    remove_seconds: float = REMOVE_SECONDS
    left: list[Finding] = field(default_factory=list)
    """What could not be removed."""

    def look(self, nodes: Iterable[str]) -> dict[str, Looked]:
        """How each node sees the filesystem."""
        seconds = STAT_SHARE * self.one.stat_seconds * self.time_factor
        listed = list(nodes)
        with side_by_side(ANSWERS_AT_ONCE) as executor:
            answers = executor.map(lambda node: self._ask(node, seconds, do="look"), listed)
            return dict(zip(listed, answers, strict=True))

    @contextmanager
    def folders(self, nodes: Sequence[str], inner: Sequence[str], seconds: float) -> Iterator[dict[str, str]]:
        """Makes the folder from each of these nodes and removes it; {node: its path}, without nodes that could not.

        What earlier runs left there is removed first. `seconds`: how long the run may use it.
        """
        run = secrets.token_hex(8)
        name = f".rackwright-bench-{int(time.time() + seconds)}-{run}"
        with under_way(self.cluster, run):
            before = [one for one in unfinished(self.cluster) if one != run]
            made: dict[str, str] = {}
            try:
                for node in nodes:
                    answer = self._ask(
                        node,
                        REMOVE_SECONDS,
                        do="make",
                        name=name,
                        inner=list(inner),
                        unfinished=before,
                    )
                    if answer.trouble is None:
                        made[node] = posixpath.join(self.one.path, self.one.bench.folder, name)
                    else:
                        printed = f"{node}: cannot make a folder on {self.one.path}: {answer.trouble}"
                        self.left.append(Finding(Status.UNKNOWN, f"{printed}{self._hint(answer)}"))
                yield made
            finally:
                if self._removed(nodes, name):
                    done(self.cluster, run)

    def _hint(self, answer: Looked) -> str:
        if "PermissionError" in (answer.error or ""):
            return (
                "; declare `bench: {user: ..., folder: ...}`, a user who may write and a folder of that user"
            )
        return ""

    def _removed(self, nodes: Sequence[str], name: str) -> bool:
        left = [(node, trouble) for node in nodes if (trouble := self._not_removed(node, name)) is not None]
        if left:
            path = posixpath.join(self.one.path, self.one.bench.folder, name)
            who = fold(node for node, _ in left)
            printed = f"{who}: {path} could not be removed: {left[0][1]}; the next bench removes it"
            self.left.append(Finding(Status.UNKNOWN, printed))
        return not left

    def _not_removed(self, node: str, name: str) -> str | None:
        """Why a folder is left, or None; on a filesystem that hangs nothing is tried."""
        for pause in (1, 0):  # ranks of a job that was cancelled may write for another moment
            trouble = self.look((node,))[node].trouble
            if trouble is not None:
                return trouble
            answer = self._ask(node, self.remove_seconds, do="remove", name=name)
            trouble = answer.trouble
            if trouble is None or answer.hung is not None:
                return trouble
            time.sleep(pause)
        return trouble

    def _ask(self, node: str, seconds: float, **more: object) -> Looked:
        bench = self.one.bench
        asked = {
            "path": self.one.path,
            "folder": bench.folder,
            "user": bench.user,
            "seconds": seconds,
            **more,
        }
        command, program = python_command(PROGRAM, json.dumps(asked))
        try:
            result = self.shell.run(
                node, command, stdin=program, timeout=seconds + START_SECONDS * self.time_factor
            )
        except ConnectionFailed as error:
            return Looked(error=error.message[:4000])
        try:
            return result_of(LOOKED, result.stdout)
        except Refused as error:
            printed = last_line(result.stdout, result.stderr)
            return Looked(error=f"unusable answer ({error}): {printed}")
