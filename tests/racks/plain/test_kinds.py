"""No drift of the roles of this rack hides behind a digest: each kind is seeded alone, on both systems."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from rackwright.engine.run import apply, plan
from rackwright.plan.changes import Kind
from rackwright.plan.node_plan import NodePlan
from tests.racks.kinds import ELSEWHERE, SEEDS, Seed, in_sync, one_each, rounds
from tests.racks.plain.conftest import declared
from tests.racks.site import Site
from tests.racks.snapshot import USER_TABLES, Snapshot, assert_same, snapshots

NODES = ("head1", "worker1")


def _here() -> list[Seed]:
    """The seeds of the roles that this rack has, dealt to its nodes."""
    mine = [seed for seed in SEEDS if seed.drift.role in declared()["roles"]]
    return [
        replace(seed, drift=replace(seed.drift, node=NODES[number % len(NODES)]))
        for number, seed in enumerate(mine)
    ]


def test_every_kind_of_change_has_a_seed():
    assert {seed.kind for seed in SEEDS} == set(get_args(Kind)) - ELSEWHERE
    assert {seed.kind for seed in _here()} == set(get_args(Kind)) - ELSEWHERE - {"slurm", "database"}
    assert len({(seed.drift.node, seed.what) for seed in SEEDS}) == len(SEEDS) >= 30
    assert len(_here()) >= 20


@pytest.mark.lab
def test_each_is_found_and_repaired(site: Site, baseline: dict[str, Snapshot]):
    in_sync(site)
    wrong: list[str] = []
    for seeds in rounds(_here(), site.nodes):
        wrong += one_each(site, seeds)
    assert not wrong, "\n".join(wrong)
    for node in site.nodes:
        site.on(node, "rm -f /etc/hosts.mine")
    assert_same(baseline, snapshots(site), touched=False, but=USER_TABLES)


_JOB = Path(__file__).with_name("versions_job.py")
_JQ_BY_HAND = {
    "sed -i '/^Package: jq$/,/^$/s/^Version: /&9/' /var/lib/dpkg/status": "9{version}, held",
    "apt-mark -qq unhold jq": "{version}, not held",
    "apt-get -qq purge --allow-change-held-packages jq >/dev/null": None,
}
"""What is done to jq by hand, and what the plan finds."""


@pytest.mark.lab
def test_a_version_and_a_hold(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
):
    """By a separate deploy, with a separate state folder."""
    version = site.on("worker1", "dpkg-query -W -f '${Version}' jq")
    monkeypatch.setenv("JQ_VERSION", version)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("versions")))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(site.config))
    cluster = site.cluster

    def planned() -> NodePlan:
        return plan(cluster, limit="worker1", deploy=_JOB).nodes["worker1"]

    try:
        apply(cluster, limit="worker1", deploy=_JOB)
        planned()
        for by_hand, before in _JQ_BY_HAND.items():
            known = planned()
            assert (known.changes, known.evaluated) == (0, 0), "no digest to hide behind"
            site.on("worker1", by_hand)
            applied = apply(cluster, limit="worker1", deploy=_JOB)
            (operation,) = applied.plan.nodes["worker1"].operations
            (change,) = operation.changes
            assert (change.kind, change.target, change.after) == ("package", "jq", f"{version}, held")
            assert change.before == (before and before.format(version=version))
            assert applied.result is not None
            assert planned().changes == 0
    finally:
        site.on("worker1", "apt-mark -qq unhold jq")
