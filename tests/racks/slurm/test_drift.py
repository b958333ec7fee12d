"""Manual changes: the plan shows exactly these, and apply undoes them and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.racks.drifts import DAEMONS_AND_KERNEL, FILES_AND_PEOPLE, RECORDS, Drift
from tests.racks.site import Operations, Site, changed_by, operations
from tests.racks.slurm.conftest import NODES, FirstApply
from tests.racks.snapshot import USER_TABLES, assert_same, snapshots

pytestmark = pytest.mark.lab


def test_one_value_changed_by_hand(rack: Site, first_apply: FirstApply):
    rack.on("worker1", "sed -i s/^SlurmdTimeout=.*/SlurmdTimeout=7/ /etc/slurm/slurm.conf")
    plan = rack.cli("plan", str(rack.file), "--json", expect=2).json()
    written = {
        "kind": "file",
        "target": "/etc/slurm/slurm.conf",
        "before": "file 644 root:root",
        "after": "file 644 root:root",
        "because": None,
        "disruptive": False,
        "erases": None,
    }
    reloaded = {
        "kind": "unit",
        "target": "slurmd.service",
        "before": "running",
        "after": "reloaded",
        "diff": [],
        "because": "/etc/slurm/slurm.conf changes",
        "disruptive": False,
        "erases": None,
    }
    by_node = {node["node"]: node["operations"] for node in plan["nodes"]}
    assert by_node["head1"] == by_node["worker2"] == []
    changes = [change for operation in by_node["worker1"] for change in operation["changes"]]
    diff = changes[0].pop("diff")
    assert [line for line in diff[2:] if line[0] in "+-"] == ["-SlurmdTimeout=7", "+SlurmdTimeout=300"]
    assert changes == [written, reloaded]
    shown = rack.cli("plan", str(rack.file), expect=2).out.splitlines()
    assert "  worker1: Write /etc/slurm/slurm.conf" in shown
    assert "      -SlurmdTimeout=7" in shown
    assert "      +SlurmdTimeout=300" in shown
    assert shown[-1] == "plan: 2 changes on 1 of 3 nodes, 0 disruptive"
    _repair(rack, first_apply, operations(plan))


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(
            FILES_AND_PEOPLE, id="files and people", marks=pytest.mark.proof
        ),  # see plain/test_kinds.py
        pytest.param(DAEMONS_AND_KERNEL, id="daemons", marks=pytest.mark.proof),  # a minute of waiting
        pytest.param(RECORDS, id="records"),
    ],
)
def test_every_drift_is_named_and_repaired(rack: Site, first_apply: FirstApply, batch: tuple[Drift, ...]):
    for node in NODES:
        rack.on(node, "\n".join(drift.by_hand for drift in batch if drift.node == node))
    plan = rack.plan(2)
    assert all(node["error"] is None for node in plan["nodes"])
    expected = set(itertools.chain.from_iterable(drift.operations for drift in batch))
    assert operations(plan) == expected
    wrong = [f"{drift.by_hand}: {said}" for drift in batch if (said := _said(plan, drift)) is not None]
    assert not wrong, "\n".join(wrong)
    assert len(_targets(plan)) == len({(d.node, d.target) for d in batch} | _gated(plan))
    _repair(rack, first_apply, expected)


def test_the_drifts_are_enough():
    assert len(FILES_AND_PEOPLE + DAEMONS_AND_KERNEL + RECORDS) >= 50


def test_a_stopped_database_daemon_hides_no_records_and_invents_none(rack: Site, first_apply: FirstApply):
    rack.on("head1", "systemctl stop slurmdbd")
    started = {("head1", "slurm", "Start slurmdbd with its settings")}
    assert operations(rack.plan(2)) == started
    _repair(rack, first_apply, started)


@pytest.mark.proof  # its plan waits for slurmdbd
def test_records_that_cannot_be_read_are_not_called_unchanged(rack: Site, first_apply: FirstApply):
    """With another password in the database slurmdbd runs but answers no client."""
    rack.on("head1", """mariadb -e "ALTER USER slurm@localhost IDENTIFIED BY 'another'" """)
    plan = rack.plan(2)
    changes = [(change["target"], change["before"], change["after"]) for _, _, change in _changes(plan)]
    assert changes == [
        ("database user slurm@localhost", "mysql_native_password", "password (sensitive)"),
        ("accounting", "slurmdbd does not answer", "compared once it does"),
    ]
    _repair(rack, first_apply, {("head1", "mariadb", "Create slurmdbd's database and user")})


def _repair(rack: Site, first_apply: FirstApply, planned: Operations) -> None:
    """Apply makes the planned changes, and then every node is as after the first apply."""
    rack.converge()
    assert changed_by(rack.runs()[-1]) == planned
    assert_same(first_apply.baseline, snapshots(rack), touched=False, but=USER_TABLES)


def _changes(plan: dict[str, Any]) -> Iterable[tuple[str, dict[str, Any], dict[str, Any]]]:
    for node in plan["nodes"]:
        for operation in node["operations"]:
            for change in operation["changes"]:
                yield node["node"], operation, change


def _targets(plan: dict[str, Any]) -> set[tuple[str, str]]:
    return {(node, change["target"]) for node, _, change in _changes(plan)}


def _gated(plan: dict[str, Any]) -> set[tuple[str, str]]:
    return {(node, change["target"]) for node, _, change in _changes(plan) if change["because"]}


def _said(plan: dict[str, Any], drift: Drift) -> str | None:
    """The plan's lines for a drift, if they are not the expected ones."""
    mine = [
        change
        for node, operation, change in _changes(plan)
        if (node, operation["role"], operation["name"]) == (drift.node, drift.role, drift.operation)
        and change["target"] == drift.target
    ]
    says = [line for change in mine for line in _lines(change)]
    good = len(says) == len(drift.says) and all(map(fnmatchcase, says, map(_literally, drift.says)))
    return None if good else f"wanted {drift.says}, found {says}"


def _lines(change: dict[str, Any]) -> list[str]:
    if change["diff"] and change["before"] == change["after"]:
        return [line for line in change["diff"][2:] if line[0] in "+-"]
    return [f"{change['before']} -> {change['after']}"]


def _literally(pattern: str) -> str:
    """Only a `*` after or before an arrow stands for anything."""
    return (
        pattern if pattern.startswith("* -> ") or pattern.endswith(" -> *") else pattern.replace("*", "[*]")
    )
