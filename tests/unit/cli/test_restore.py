"""rackwright restore: what a terminal shows, and the confirmation before state is destroyed."""

from __future__ import annotations

import io

import pytest

from rackwright.cli import restore as command
from rackwright.errors import RackwrightError
from rackwright.model.backups import BackupPart
from rackwright.restore.node import Listing
from rackwright.restore.run import Restored
from rackwright.restore.targets import Restoring, Target
from tests.factories import make_cluster
from tests.unit.restore.conftest import Records

NAME = "head1-20251126T023000Z"
PARTS = (BackupPart("database", "database"), BackupPart("state", "state"))
STOPPED = (("head1", "slurmdbd.service"), ("head1", "slurmctld.service"))


@pytest.fixture(autouse=True)
def cluster(monkeypatch):
    plain = make_cluster()
    nodes = tuple(node.with_options({"records": Records()}) for node in plain.nodes)
    found = plain.model_copy(update={"nodes": nodes})
    monkeypatch.setattr(command, "load_cluster", lambda file: found)
    return found


@pytest.fixture
def asked(monkeypatch, cluster):
    """What the restore would destroy, and whether it was agreed to."""
    asked = {
        "destroyed": {},
        "unknown": {},
        "unfinished": (),
        "finishes": False,
        "agreed": None,
        "called": None,
    }

    def restore(cluster, heads, source, *, agree, notice):
        asked["called"] = ([node.name for node in heads], source)
        targets = tuple(Target(node, {"name": NAME}, PARTS) for node in heads)
        restoring = Restoring(
            cluster,
            targets,
            STOPPED,
            asked["destroyed"],
            asked["unknown"],
            asked["unfinished"],
            asked["finishes"],
        )
        asked["agreed"] = agree(restoring)
        return Restored(("head1: database: 10 bytes",)) if asked["agreed"] else None

    monkeypatch.setattr(command, "restore", restore)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    return asked


def test_an_empty_head_needs_yes(rackwright, asked):
    ran = rackwright("restore", "c.yaml", "--yes", "--from", "x", "--node", "head1")
    assert (ran.status, asked["called"]) == (0, (["head1"], "x"))
    assert ran.out == "head1: database: 10 bytes\nnext: rackwright verify c.yaml\n"
    assert ran.err == (
        f"restore {NAME} to head1: database, state\n"
        "stopped meanwhile: slurmdbd.service on head1, slurmctld.service on head1\n"
    )
    ran = rackwright("restore", "c.yaml")
    assert (ran.status, asked["agreed"]) == (1, True)
    assert "hint: read the lines above and run again with --yes" in ran.err


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"destroyed": {"head1": ("2 jobs in the queue",)}}, "head1: destroyed: 2 jobs in the queue"),
        (
            {"unknown": {"head1": ("the queue: no answer",)}},
            "head1: it is not known whether anything would be destroyed: the queue: no answer",
        ),
    ],
)
def test_a_head_in_use_needs_the_clusters_name(rackwright, asked, given, shown):
    asked.update(given)
    ran = rackwright("restore", "c.yaml", "--yes")
    assert (ran.status, asked["agreed"]) == (1, None)
    assert shown in ran.err
    assert "hint: look at what is destroyed above and run again with --confirm test" in ran.err
    ran = rackwright("restore", "c.yaml", "--confirm", "prod")
    assert (ran.status, "'prod' is not the cluster's name; nothing was changed" in ran.err) == (1, True)
    assert rackwright("restore", "c.yaml", "--confirm", "test").status == 0


def test_the_name_is_typed_at_a_terminal(rackwright, asked, monkeypatch):
    asked["destroyed"] = {"head1": ("2 jobs in the queue",)}
    monkeypatch.setattr("sys.stdin", type("Terminal", (io.StringIO,), {"isatty": lambda self: True})(""))
    monkeypatch.setattr(command.typer, "prompt", lambda *_, **__: "test ")
    assert rackwright("restore", "c.yaml").status == 0
    asked["destroyed"] = {}
    monkeypatch.setattr(command.typer, "confirm", lambda *_, **__: False)
    assert rackwright("restore", "c.yaml").status == 2


def test_an_unfinished_restore_is_named_and_needs_no_name(rackwright, asked):
    asked.update(unfinished=("head1",))
    ran = rackwright("restore", "c.yaml", "--yes")
    assert (ran.status, "head1 has an unfinished restore, which this one replaces" in ran.err) == (0, True)


def test_a_restore_whose_units_are_left_to_start_overwrites_nothing(rackwright, asked):
    asked.update(unfinished=("head1",), finishes=True)
    ran = rackwright("restore", "c.yaml", "--yes")
    assert ran.status == 0
    assert ran.err == (
        f"an interrupted restore has put back all of {NAME}; nothing is overwritten\n"
        "left to do: start slurmdbd.service on head1, slurmctld.service on head1\n"
    )


def test_the_list(rackwright, monkeypatch):
    manifest = {"name": NAME, "parts": [{"name": "database", "size": 10}, {"name": "state", "size": 5}]}
    listing = Listing("/srv", (manifest,), ("x cannot be read",))
    monkeypatch.setattr(command, "available", lambda cluster, head: listing)
    ran = rackwright("restore", "c.yaml", "--list")
    assert ran.out == f"{NAME}  2025-11-26 02:30 UTC  15 bytes  database, state\n"
    assert ran.err == "not usable: x cannot be read\n"
    monkeypatch.setattr(command, "available", lambda cluster, head: Listing("/srv", (), ()))
    assert rackwright("restore", "c.yaml", "--list").err == "/srv of head1 has no backup\n"


def test_fetching(rackwright, monkeypatch, tmp_path):
    monkeypatch.setattr(
        command, "fetch_backup", lambda cluster, head, name, into, notice: into / (name or NAME)
    )
    assert rackwright("restore", "c.yaml", "--fetch", tmp_path).out == f"{tmp_path}/{NAME}\n"
    ran = rackwright("restore", "c.yaml", "--fetch", tmp_path, "--from", "/srv/x")
    assert (ran.status, "--from names one backup in the place of one head" in ran.err) == (1, True)


def test_nodes_without_anything_to_put_back(rackwright):
    ran = rackwright("restore", "c.yaml", "--node", "worker1")
    assert (ran.status, ran.err) == (1, "error: worker1 has nothing to restore.\nhint: one of: head1\n")
    assert "nowhere is not in cluster test" in rackwright("restore", "c.yaml", "--node", "nowhere").err


def test_a_cluster_without_state(cluster, monkeypatch):
    monkeypatch.setattr(command, "load_cluster", lambda file: make_cluster())
    with pytest.raises(RackwrightError, match="This cluster has nothing to restore") as refused:
        command.restore_command("c.yaml")
    assert refused.value.hint == "no role of this cluster backs anything up"
