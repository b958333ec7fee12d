"""No drift hides behind a digest on a rack with Slurm: each kind is seeded alone.

What needs no Slurm is seeded in tests/racks/plain/test_kinds.py. RACKWRIGHT_TEST_SEEDS sets what is seeded here:
`kinds` (the default) one of each kind that only this rack has, `first` one of them on each node, `all` every
seed there is (`make proof SUITE=drift-kinds`).
"""

from __future__ import annotations

import os

import pytest

from tests.racks.kinds import SEEDS, Seed, in_sync, one_each, rounds
from tests.racks.site import Site
from tests.racks.slurm.conftest import NODES, FirstApply
from tests.racks.snapshot import USER_TABLES, assert_same, snapshots

pytestmark = pytest.mark.lab

ONLY_HERE = ("Slurm QOS", "database rights", "mode", "unit masked", "secret")
"""On the head accounting and its database; on the workers files, units and a secret of Slurm's."""
_FIRST = ("Slurm QOS", "mode", "unit masked")


def _chosen() -> list[Seed]:
    chosen = {"all": tuple(seed.what for seed in SEEDS), "kinds": ONLY_HERE, "first": _FIRST}
    return [seed for seed in SEEDS if seed.what in chosen[os.environ.get("RACKWRIGHT_TEST_SEEDS", "kinds")]]


_ROUNDS = list(rounds(_chosen(), NODES))


@pytest.mark.parametrize("number", range(len(_ROUNDS)))
def test_each_is_found_and_repaired(rack: Site, first_apply: FirstApply, number: int):
    in_sync(rack)
    assert one_each(rack, _ROUNDS[number]) == []
    rack.on("worker1", "rm -f /etc/hosts.mine")
    assert_same(first_apply.baseline, snapshots(rack), touched=False, but=USER_TABLES)
