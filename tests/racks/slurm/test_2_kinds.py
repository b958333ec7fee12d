"""No drift of any kind hides behind the digest: each is seeded alone, on a node that was in sync."""

from __future__ import annotations

import json
from itertools import zip_longest
from pathlib import Path
from typing import Any, get_args

import pytest

from rackwright.changes import Kind
from rackwright.engine.plan import NodePlan
from rackwright.engine.run import apply, plan
from rackwright.model.load import load_cluster
from tests.racks.slurm.conftest import FirstApply
from tests.racks.slurm.kinds import SEEDS, Seed
from tests.racks.slurm.site import NODES, Site, operations
from tests.racks.slurm.snapshot import USER_TABLES, assert_same, snapshots

_ROUNDS = list(zip_longest(*([seed for seed in SEEDS if seed.drift.node == node] for node in NODES)))
"""On each node one at a time, on all nodes at once."""
_JOB = Path(__file__).with_name("versions_job.py")


def test_every_kind_of_change_has_a_seed():
    assert {seed.kind for seed in SEEDS} == set(get_args(Kind))
    assert len({(seed.drift.node, seed.what) for seed in SEEDS}) == len(SEEDS) >= 30


@pytest.mark.lab
def test_each_is_found_and_repaired(rack: Site, first_apply: FirstApply):
    _drift(rack, 0)
    assert {node["evaluated"] for node in _drift(rack, 0)["nodes"]} == {0}, "the digests are not in memory"
    wrong: list[str] = []
    for seeds in _ROUNDS:
        wrong += _one_each(rack, [seed for seed in seeds if seed is not None])
    assert not wrong, "\n".join(wrong)
    rack.on("worker1", "rm /etc/hosts.mine")
    assert_same(first_apply.baseline, snapshots(rack), touched=False, but=USER_TABLES)


def _one_each(rack: Site, seeds: list[Seed]) -> list[str]:
    """What was not found, or not as it should be; the nodes are as declared again."""
    wrong = [f"{node}: no digest to hide behind" for node, digest in _digests(rack).items() if digest is None]
    for seed in seeds:
        rack.on(seed.drift.node, seed.drift.by_hand)
    found = _drift(rack, 2)
    for seed in seeds:
        told = {planned for planned in operations(found) if planned[0] == seed.drift.node}
        if told != seed.drift.operations:
            wrong.append(f"{seed.what}: found as {told}, not {seed.drift.operations}")
        elif (seed.kind, seed.drift.target) not in _changed(found, seed.drift.node):
            wrong.append(f"{seed.what}: found as {_changed(found, seed.drift.node)}")
    rack.apply(0)
    if (changed := rack.changed_by(rack.runs()[-1]["run"])) != operations(found):
        wrong.append(
            f"{[seed.what for seed in seeds]}: {changed} was changed, {operations(found)} was planned"
        )
    _drift(rack, 0)  # evaluated whole, and remembered again
    return wrong


def _drift(rack: Site, expect: int) -> dict[str, Any]:
    document: dict[str, Any] = rack.cli("drift", str(rack.file), "--json", expect=expect).json()
    return document


def _digests(rack: Site) -> dict[str, str | None]:
    """What the engine's memory holds, by node."""
    found = {}
    for path in (rack.state / "rackwright" / rack.name / "facts").glob("*.json"):
        found.update({node: entry["digest"] for node, entry in json.loads(path.read_text())["nodes"].items()})
    assert set(found) == set(NODES)
    return found


def _changed(document: dict[str, Any], name: str) -> set[tuple[str, str]]:
    (mine,) = (node["operations"] for node in document["nodes"] if node["node"] == name)
    return {(change["kind"], change["target"]) for operation in mine for change in operation["changes"]}


_JQ_BY_HAND = {
    "sed -i '/^Package: jq$/,/^$/s/^Version: /&9/' /var/lib/dpkg/status": "9{version}, held",
    "apt-mark -qq unhold jq": "{version}, not held",
    "apt-get -qq purge --allow-change-held-packages jq >/dev/null": None,
}
"""What is done to jq by hand, and what the plan finds."""


@pytest.mark.lab
def test_a_version_and_a_hold(
    rack: Site, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
):
    """By a deploy of its own, with a state folder of its own."""
    version = rack.on("worker1", "dpkg-query -W -f '${Version}' jq")
    monkeypatch.setenv("JQ_VERSION", version)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("versions")))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(rack.config))
    cluster = load_cluster(rack.file)

    def planned() -> NodePlan:
        return plan(cluster, limit="worker1", deploy=_JOB).nodes["worker1"]

    try:
        apply(cluster, limit="worker1", deploy=_JOB)
        planned()
        for by_hand, before in _JQ_BY_HAND.items():
            known = planned()
            assert (known.changes, known.evaluated) == (0, 0), "no digest to hide behind"
            rack.on("worker1", by_hand)
            (operation,) = planned().operations
            (change,) = operation.changes
            assert (change.kind, change.target, change.after) == ("package", "jq", f"{version}, held")
            assert change.before == (before and before.format(version=version))
            assert apply(cluster, limit="worker1", deploy=_JOB).result is not None
            assert planned().changes == 0
    finally:
        rack.on("worker1", "apt-mark -qq unhold jq")
