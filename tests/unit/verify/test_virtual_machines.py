"""What the rack of virtual machines can be asked, compared with the rack of containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.health.declare import expected_of
from rackwright.verify.judge import out_of_scope
from rackwright.verify.selection import select

INVENTORY = Path(__file__).parents[3] / "inventory"


def aside(name: str) -> list[tuple[str, str, str]]:
    """(node, role, check) of every check that the declared platform leaves out."""
    cluster = load_cluster(INVENTORY / name)
    found = (out_of_scope(planned) for planned in select(cluster, limit=None, roles=None).checks)
    return [(one.node, one.role, one.check) for one in found if one is not None]


def test_of_a_virtual_machine_only_the_governor_is_out_of_scope():
    governor = ("tuning", "every CPU has the declared frequency governor")
    assert aside("vm.yaml") == [(node, *governor) for node in ("head1", "worker1", "worker2")]
    assert len(aside("lab.yaml")) > 40


@pytest.mark.parametrize("node", ["head1", "worker1"])
def test_health_leaves_out_what_is_the_hosts_hardware(node):
    cluster = load_cluster(INVENTORY / "vm.yaml")
    expected = expected_of(cluster, cluster.by_name[node])
    assert set(expected.lacking) == {"hardware", "cpu-frequency"}
    assert expected.own_clock_stratum == 10
    assert expected.memory_mib == 2048
