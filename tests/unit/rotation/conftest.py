"""Three nodes, each a folder of this machine with a key file and a daemon that read it when it was restarted."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from rackwright.command import CommandResult
from rackwright.engine import head_lock
from rackwright.errors import ConnectionFailed
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import SharedKey, SharesKey
from rackwright.model.options import RoleOptions
from rackwright.plan.changes import Change
from rackwright.plan.node_plan import NodePlan, PlannedOperation, PlanResult
from rackwright.rotation import rotate as rotation
from rackwright.secrets.store import SecretStore, store_of
from tests.factories import make_cluster
from tests.unit.engine.local_head import LocalHeads

SECRET = "munge_key"
_SYSTEMCTL = """\
#!/bin/sh
[ "$1" = restart ] && cp "$2/key" "$2/running"
exit 0
"""


class Killed(BaseException):
    """The process is gone: nothing catches it."""


class KeyOptions(SharesKey, RoleOptions):
    """A role whose key is the same on all nodes; stands for the munge role."""

    secrets: ClassVar[tuple[str, ...]] = (SECRET,)
    shared_secret: ClassVar[str] = SECRET
    folder: Path

    def shared_key(self, node: Node, secret: str) -> SharedKey:
        place = self.folder / node.name
        owner = str(os.getuid())
        return SharedKey(str(place / "key"), owner, "400", str(place), base64.b64decode(secret))


class Rack:
    """The folders, and the shell that runs on them; `before` may fail or kill at each step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        cluster = make_cluster()
        options = {"munge": KeyOptions(folder=folder)}
        nodes = tuple(node.model_copy(update={"options": options}) for node in cluster.nodes)
        self.cluster: Cluster = cluster.model_copy(update={"path": folder / "c.yaml", "nodes": nodes})
        self.before: Callable[[str], None] = lambda step: None
        self.silent: set[str] = set()
        self.ran: list[tuple[str, str]] = []
        self.heads = LocalHeads()
        self._lock = threading.Lock()
        (folder / "bin").mkdir()
        (folder / "bin" / "systemctl").write_text(_SYSTEMCTL)
        (folder / "bin" / "systemctl").chmod(0o755)
        store = SecretStore(self.cluster.path, self.cluster.name)
        store.ensure([SECRET])
        store.mark_applied([SECRET])
        for node in nodes:
            (folder / node.name).mkdir()
            for name in ("key", "running"):
                (folder / node.name / name).write_bytes(self.stored())

    def store(self) -> SecretStore:
        """The store as a new process sees it."""
        return SecretStore(self.cluster.path, self.cluster.name)

    def stored(self) -> bytes:
        return base64.b64decode(self.store().get(SECRET).reveal())

    def held(self, name: str) -> list[bytes]:
        """A file of every node."""
        return [(self.folder / node.name / name).read_bytes() for node in self.cluster.nodes]

    def staged(self) -> list[str]:
        return [path.parent.name for path in self.folder.glob("*/key.next*")]

    def run(self, node: str, command: str, *, stdin: Any = None, timeout: float) -> CommandResult:
        """As Pool.run."""
        with self._lock:
            self.ran.append((node, command))
            self.before(f"{node}: {'stage' if stdin else 'rest'}")
        if node in self.silent:
            raise ConnectionFailed(f"{node} did not answer.")
        environment = {"PATH": f"{self.folder}/bin:/usr/bin:/bin"}
        done = subprocess.run(
            ["sh", "-c", command], input=stdin or "", capture_output=True, text=True, timeout=60, env=environment,
            check=False,
        )  # fmt: skip
        return CommandResult(command, done.returncode, done.stdout, done.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def plan(self, cluster: Cluster, *, renewed: frozenset[str] = frozenset(), **_: object) -> PlanResult:
        """As rackwright.engine.run.plan, of the key files alone."""
        change = Change("file", "/etc/munge/munge.key", "file 400", "file 400, content (sensitive)")
        operation = PlannedOperation("munge", "Write the munge key", (change,), ())
        wanted = self.stored()
        plans = {}
        for node in cluster.nodes:
            differs = renewed or (self.folder / node.name / "key").read_bytes() != wanted
            error = "it did not answer" if node.name in self.silent else None
            plans[node.name] = NodePlan(node.name, (operation,) if differs else (), error=error)
        return PlanResult(cluster.name, str(cluster.path), cluster.sha256, plans)


@pytest.fixture
def rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rack:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    heads = LocalHeads()
    monkeypatch.setattr(head_lock, "_dial", heads.dial)
    monkeypatch.setattr(head_lock, "LOCKS", str(tmp_path / "run"))
    monkeypatch.setattr(head_lock, "JOURNALS", str(tmp_path / "lib" / "runs"))
    (tmp_path / "rack").mkdir()
    rack = Rack(tmp_path / "rack")
    rack.heads = heads
    monkeypatch.setattr(rotation, "plan", rack.plan)
    monkeypatch.setattr(rotation, "Pool", lambda cluster: rack)
    monkeypatch.setattr(rotation, "store_of", lambda cluster: rack.store())
    assert store_of(rack.cluster).path == rack.store().path
    return rack
