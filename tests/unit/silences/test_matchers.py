"""What a wave holds back beyond the alerts of its nodes: only what it alone explains."""

from __future__ import annotations

from typing import ClassVar

import pytest

from rackwright.alerts.catalogue import ALERTS
from rackwright.model.interfaces import RunsWorkloadManager
from rackwright.model.options import RoleOptions
from rackwright.model.types import WorkloadManager
from rackwright.silences.matchers import of_wave
from tests.factories import make_cluster, make_node


class Slurm(RoleOptions, RunsWorkloadManager):
    """Stands for the slurm role."""

    workload_manager: ClassVar[WorkloadManager] = WorkloadManager.SLURM
    core_spec_count: int = 0


def site(size=40, *, racks=4, options=None):
    """Nodes n0, n1 ... of one leaf, in racks of equal size."""
    return make_cluster(
        *(
            make_node(f"n{i}", i + 10, rack=f"r{i * racks // size + 1}", switch="leaf1.a").with_options(
                {"slurm": Slurm()} if options is None else options
            )
            for i in range(size)
        )
    )


def further(cluster, *numbers):
    first, *others = of_wave(cluster, tuple(f"n{i}" for i in numbers))
    assert first == (f'node=~"{"|".join(f"n{i}" for i in numbers)}"',)
    return others


def test_one_node_holds_nothing_else_back():
    assert further(site(), 0) == []


def test_a_whole_rack():
    assert ('alertname="RackDown"', 'rack=~"r1"') in further(site(), *range(10))
    assert ('alertname="RackDown"', 'rack=~"r1|r3"') in further(site(), *range(12), *range(20, 30))


def test_a_rack_of_which_a_node_stays_keeps_its_alert():
    """Silenced, it would still suppress NodeDown of that node."""
    assert not any("RackDown" in one[0] for one in further(site(), *range(9)))


def test_a_dot_in_a_name_is_no_wildcard():
    (_, leaf, _) = further(site(), *range(40))
    assert leaf == ('alertname="LeafDown"', 'leaf=~"leaf1[.]a"')


@pytest.mark.parametrize(("nodes", "held"), [(3, False), (4, True)])
def test_a_tenth_of_the_workers_is_why_many_are_unavailable(nodes, held):
    assert (('alertname="SlurmNodesUnavailable"',) in further(site(), *range(nodes))) is held


def test_without_a_workload_manager_none_is_unavailable():
    assert all(len(one) == 2 for one in further(site(options={}), *range(40)))


def test_the_alerts_exist():
    named = {one[0].split('"')[1] for one in further(site(), *range(40))}
    assert len(named) == 3
    assert named <= ALERTS.keys()
