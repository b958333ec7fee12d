"""Node side of a restore: sends and runs the programs of rackwright.backup."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from shlex import quote
from typing import Any, BinaryIO, Self

import paramiko

from rackwright.backup import places
from rackwright.backup.catalogue import made, mistake
from rackwright.boundary import last_line, printable, read_json
from rackwright.errors import RestoreError
from rackwright.model.cluster import Cluster
from rackwright.node_programs import BACKUP, PUT_BACK, python_command
from rackwright.ssh import Pool, connect
from rackwright.ssh.streams import collect, feed

_ASK_SECONDS = 300.0
_STEP_SECONDS = 600.0
_LOAD_SECONDS = 6 * 3600.0
"""How long the largest part may take once the node has all of it."""


@dataclass(frozen=True)
class Listing:
    """What is in the place of a node."""

    place: str
    backups: tuple[dict[str, Any], ...]
    """Manifests, newest first, each with its `name`."""
    broken: tuple[str, ...]
    """Why others cannot be used."""


class Nodes:
    """The nodes of a cluster, as a restore uses them; a context manager."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pool = Pool(cluster)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def ask(self, node: str, command: str, *, seconds: float = _ASK_SECONDS) -> tuple[int, str, str]:
        """Exit status, output and last line of a shell command."""
        ran = self._pool.run(node, command, timeout=seconds)
        return ran.exit_status, ran.stdout, last_line(ran.stdout, ran.stderr)

    def backups(self, node: str) -> Listing:
        """The backups in the place of a node."""
        command, program = python_command(BACKUP, "--list")
        ran = self._pool.run(
            node,
            f"test -e {quote(places.SETTINGS)} || exit 3; {command}",
            stdin=program,
            timeout=_ASK_SECONDS,
        )
        if ran.exit_status == 3:
            raise RestoreError(
                f"{node} has no backup settings.",
                hint=f"apply first: rackwright apply {self._cluster.path}",
            )
        if ran.exit_status != 0:
            raise RestoreError(f"{node} cannot list its backups: {last_line(ran.stdout, ran.stderr)}.")
        found = read_json(ran.stdout)
        if isinstance(found, dict) and found.get("refused") is not None:
            raise RestoreError(
                f"{node} cannot read its backups: {last_line(str(found['refused']))}.",
                hint="mount the place, or restore a copy: --from FOLDER",
            )
        listed = found.get("backups") if isinstance(found, dict) else None
        if not isinstance(listed, list) or any(map(_is_strange, listed)):
            raise RestoreError(f"{node} printed an invalid list of backups.")
        broken = tuple(printable(str(one), 300) for one in found.get("broken") or ())
        return Listing(str(found.get("place")), tuple(listed), broken)

    def state(self, node: str) -> dict[str, Any]:
        """What an interrupted restore left there: `run`, its backups, and `stopped` or `ended`, how far it came."""
        found = read_json(self._step(node, {"step": "state"}))
        return found if isinstance(found, dict) else {}

    def step(self, node: str, step: dict[str, Any]) -> None:
        """Run one step of `put_back`; RestoreError where it fails."""
        self._step(node, step)

    def _step(self, node: str, step: dict[str, Any]) -> str:
        command, program = python_command(PUT_BACK, json.dumps(step))
        ran = self._pool.run(node, command, stdin=program, timeout=_STEP_SECONDS)
        if ran.exit_status != 0:
            raise RestoreError(
                f"{node}: {step['step']} of the restore failed: {last_line(ran.stdout, ran.stderr)}.",
                hint="fix that and run it again",
            )
        return ran.stdout

    def put_back(self, node: str, step: dict[str, Any], chunks: Iterable[bytes]) -> str:
        """Stream a part to a node, which puts it back; what it did."""
        command, program = python_command(PUT_BACK, json.dumps(step))
        with self._client(node) as client:
            ran = feed(client, command, chain([program], chunks), sudo=self._sudo, timeout=_LOAD_SECONDS)
        if ran.exit_status != 0:
            raise RestoreError(
                f"{node}: {step['part']['about']} was not restored: {last_line(ran.stdout, ran.stderr)}.",
                hint="fix that and run it again",
            )
        return last_line(ran.stdout)

    def fetch(self, node: str, path: str, into: BinaryIO, limit: int) -> None:
        """Copy a file of a node; ConnectionFailed where that fails or it is larger than `limit` bytes."""
        with self._client(node) as client:
            collect(client, f"exec cat -- {quote(path)}", into, sudo=self._sudo, limit=limit)

    @property
    def _sudo(self) -> bool:
        return self._cluster.ssh.become == "sudo"

    @contextmanager
    def _client(self, node: str) -> Iterator[paramiko.SSHClient]:
        client = connect(self._cluster, self._cluster.by_name[node])
        try:
            yield client
        finally:
            client.close()


def _is_strange(listed: Any) -> bool:  # noqa: ANN401 - JSON data
    if mistake(listed) is not None or not isinstance(listed.get("name"), str):
        return True
    try:
        made(listed["name"])
    except ValueError:
        return True
    return False
