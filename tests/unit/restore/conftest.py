"""A backup as a head has made it, and a head that only notes what it is asked."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from contextlib import contextmanager
from pathlib import Path

import pyrage
import pytest

from rackwright.errors import ConnectionFailed
from rackwright.model.backups import BacksUp, BackupPart, StoppedUnit
from rackwright.model.options import RoleOptions
from rackwright.model.types import NodeRole
from rackwright.restore import run
from rackwright.restore.node import Listing
from rackwright.secrets.identity import load_identities
from tests.factories import make_cluster, make_node

NAME = "head1-20251126T023000Z"


def tar(*members: tuple[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    """An archive of files, as a part that is a folder has them."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name, text in members:
            info = tarfile.TarInfo(name)
            info.size, info.type = len(text), kind
            made.addfile(info, io.BytesIO(text))
    return out.getvalue()


QUEUE, NEWER = tar(("job_state", b"queue")), tar(("job_state", b"newer"))
CONTENT = {"database": b"rows" * 100_000, "state": QUEUE}


class Records(BacksUp, RoleOptions):
    """Stands for roles with state."""

    def runs_on(self, node):
        return node.holds(NodeRole.HEAD)

    def backup_parts(self, cluster, node):
        return (
            BackupPart("database", "database", dump="d", load="l", ready="ready database"),
            BackupPart("state", "queue", folder="/state"),
            BackupPart("site", "cluster file", folder="/site", restorable=False),
        )

    def stopped_for_restore(self, cluster, node):
        return (
            StoppedUnit("queue.service", 2, "answers queue"),
            StoppedUnit("records.service", 1, "answers records"),
        )

    def overwritten_by_restore(self, cluster, node):
        return {"the queue": "probe queue"}


class Head:
    """What is on it, and what it was asked; takes the place of Nodes."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.asked: list[str] = []
        self.put: dict[str, bytes] = {}
        self.left: dict[str, dict] = {}
        self.answers: dict[str, tuple[int, str]] = {}
        self.fails_at: str | None = None
        self.only: dict[str, str] | None = None
        """The backup that each head lists; None: all."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def _note(self, node, text):
        self.asked.append(f"{node}: {text}")
        if self.fails_at is not None and self.fails_at in text:
            raise ConnectionFailed("The connection was lost.")

    def ask(self, node, command, *, seconds=0.0):
        self._note(node, command)
        status, out = self.answers.get(command, (0, ""))
        return status, out if status == 0 else "", out

    def backups(self, node):
        found = sorted((path for path in self.place.iterdir() if path.is_dir()), reverse=True)
        found = [path for path in found if self.only is None or path.name == self.only.get(node)]
        listed = [{**json.loads((one / "manifest.json").read_text()), "name": one.name} for one in found]
        return Listing(str(self.place), tuple(listed), ())

    def state(self, node):
        return self.left.get(node, {})

    def step(self, node, step):
        self._note(
            node,
            " ".join(
                [
                    step["step"],
                    *step.get("units", ()),
                    *([str(step["installation"])] if "installation" in step else []),
                ]
            ),
        )
        if step["step"] == "begin":
            self.left[node] = {"run": step["run"], "stopped": True}
        if step["step"] == "end" and node in self.left:
            self.left[node] = {"run": self.left[node]["run"], "ended": True}
        if step["step"] == "done":
            self.left.pop(node, None)

    def put_back(self, node, step, chunks):
        self._note(node, f"part {step['part']['name']}")
        data = b"".join(chunks)
        assert (len(data), hashlib.sha256(data).hexdigest()) == (step["size"], step["sha256"])
        self.put[step["part"]["name"]] = gzip.decompress(data)
        return f"{len(data)} bytes"

    def fetch(self, node, path, into, limit):
        self._note(node, f"fetch {path.rpartition('/')[2]}")
        into.write(Path(path).read_bytes())


def backup(place: Path, name: str = NAME, recipients=None, content=CONTENT, **changes):
    """Write a backup to a place."""
    folder, parts = place / name, []
    folder.mkdir(parents=True)
    keys = recipients or [load_identities()[0].to_public()]
    for part, data in content.items():
        encrypted = pyrage.encrypt(gzip.compress(data), keys)
        (folder / f"{part}.gz.age").write_bytes(encrypted)
        digest = hashlib.sha256(encrypted).hexdigest()
        parts.append({"name": part, "about": part, "size": len(encrypted), "sha256": digest})
    manifest = {
        "version": 1,
        "cluster": "test",
        "node": "head1",
        "installation": "abc",
        "parts": parts,
        **changes,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def cluster():
    options = {"records": Records()}
    return make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options=options),
        make_node("worker1", 11, options=options),
    )


@pytest.fixture
def pair():
    options = {"records": Records()}
    return make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options=options),
        make_node("head2", 11, NodeRole.HEAD, options=options, primary=False),
    )


@pytest.fixture
def head(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    place = tmp_path / "place"
    place.mkdir()
    found = Head(place)

    @contextmanager
    def unlocked(*_, **__):
        yield

    monkeypatch.setattr(run, "Nodes", lambda cluster: found)
    monkeypatch.setattr(run, "HeadLock", unlocked)
    monkeypatch.setattr(run, "_ANSWER_SECONDS", 0)
    return found
