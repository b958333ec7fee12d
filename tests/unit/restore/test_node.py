"""What a restore asks of nodes, and answers of theirs that cannot be used."""

from __future__ import annotations

import io
import json

import pytest

from rackwright.command import CommandResult
from rackwright.errors import RestoreError
from rackwright.restore import node as asking
from rackwright.restore.node import Nodes
from tests.factories import make_cluster
from tests.unit.restore.conftest import NAME

PART = {"name": "database", "about": "database", "size": 10, "sha256": "0" * 64}
MANIFEST = {
    "version": 1,
    "cluster": "test",
    "node": "head1",
    "installation": "a",
    "parts": [PART],
    "name": NAME,
}


class Pool:
    """Answers every command alike."""

    answer = (0, "", "")

    def __init__(self, cluster):
        self.commands = []

    def run(self, node, command, *, stdin=None, timeout):
        self.commands.append((command, stdin))
        return CommandResult(command, *self.answer)

    def close(self):
        pass


@pytest.fixture
def nodes(monkeypatch):
    monkeypatch.setattr(asking, "Pool", Pool)
    with Nodes(make_cluster()) as found:
        yield found


def answering(monkeypatch, status, out, err=""):
    monkeypatch.setattr(Pool, "answer", (status, out, err))


def test_the_backups_of_a_node(nodes, monkeypatch):
    found = {"place": "/srv/test", "refused": None, "backups": [MANIFEST], "broken": ["x\x1b"]}
    answering(monkeypatch, 0, json.dumps(found))
    listing = nodes.backups("head1")
    assert (listing.place, listing.backups, listing.broken) == ("/srv/test", (MANIFEST,), ("x\\x1b",))


@pytest.mark.parametrize(
    ("status", "out", "message"),
    [
        (3, "", "head1 has no backup settings."),
        (1, "", "head1 cannot list its backups: python3: not found."),
        (0, json.dumps({"refused": "nothing is mounted on /srv"}), "nothing is mounted on /srv"),
        (0, "[]", "invalid list of backups"),
        (0, json.dumps({"backups": [{**MANIFEST, "name": "../x"}]}), "invalid list of backups"),
        (0, json.dumps({"backups": [{**MANIFEST, "parts": [PART, PART]}]}), "invalid list of backups"),
        (
            0,
            json.dumps({"backups": [{**MANIFEST, "parts": [{**PART, "name": "../x"}]}]}),
            "invalid list of backups",
        ),
        (0, json.dumps({"backups": [{**MANIFEST, "version": 2}]}), "invalid list of backups"),
        (0, json.dumps({"backups": [{**MANIFEST, "cluster": 1}]}), "invalid list of backups"),
        (0, json.dumps({"backups": [{**MANIFEST, "name": 1}]}), "invalid list of backups"),
    ],
)
def test_answers_that_cannot_be_used(nodes, monkeypatch, status, out, message):
    answering(monkeypatch, status, out, "python3: not found\n")
    with pytest.raises(RestoreError) as refused:
        nodes.backups("head1")
    assert message in refused.value.message


def test_steps(nodes, monkeypatch):
    answering(monkeypatch, 0, "{}")
    assert nodes.state("head1") == {}
    nodes.step("head1", {"step": "begin", "units": [], "run": [NAME]})
    answering(monkeypatch, 1, "", "systemctl stop slurmctld.service exited 1\n")
    with pytest.raises(RestoreError, match="head1: begin of the restore failed: systemctl stop"):
        nodes.step("head1", {"step": "begin", "units": [], "run": [NAME]})


@pytest.fixture
def transfers(nodes, monkeypatch):
    """What is streamed, and how the node's command ends."""
    found = {"status": 0, "sent": b"", "command": ""}

    class Client:
        def close(self):
            found["closed"] = True

    def feed(client, command, chunks, *, sudo, timeout):
        found.update(command=command, sent=b"".join(chunks), sudo=sudo)
        return CommandResult(
            command, found["status"], "10 bytes\n", "ERROR 1064\n" if found["status"] else ""
        )

    def collect(client, command, into, *, sudo, limit):
        found.update(command=command, limit=limit)
        into.write(b"data")

    monkeypatch.setattr(asking, "connect", lambda cluster, node: Client())
    monkeypatch.setattr(asking, "feed", feed)
    monkeypatch.setattr(asking, "collect", collect)
    return found


def test_a_part_is_streamed_after_the_program(nodes, transfers):
    step = {"step": "part", "part": PART}
    assert nodes.put_back("head1", step, [b"one", b"two"]) == "10 bytes"
    assert transfers["sent"].endswith(b"onetwo")
    assert json.dumps(step) in transfers["command"]
    assert transfers["closed"]
    transfers["status"] = 1
    with pytest.raises(RestoreError, match="head1: database was not restored: ERROR 1064"):
        nodes.put_back("head1", step, [])


def test_a_file_is_fetched(nodes, transfers):
    into = io.BytesIO()
    nodes.fetch("head1", "/srv/a b", into, 10)
    assert (transfers["command"], transfers["limit"]) == ("exec cat -- '/srv/a b'", 10)
    assert into.getvalue() == b"data"
