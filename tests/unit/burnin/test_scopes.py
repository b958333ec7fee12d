"""Each unit by itself: judged by a floor, else against the others; and through the ports of a node."""

import pytest

from rackwright.burnin.engines import engine_for
from rackwright.burnin.measuring import Measurer
from rackwright.burnin.per_node import measure_loopback
from rackwright.burnin.profiles import plan_of
from rackwright.burnin.scopes import measure_scopes
from rackwright.status import Status
from rackwright.workload.protocol import Output
from tests.factories import make_cluster, make_gpu_sku, make_node
from tests.unit.burnin.head import table

SKU = make_gpu_sku()
SIZES = [2**n for n in range(30, 34)]


class Manager:
    """`figures`: what jobs reach, by their first node; None: they print nothing."""

    name = "Slurm"

    def __init__(self, **figures):
        self.figures, self.steps = figures, []

    def run(self, step):
        self.steps.append(step)
        reached = self.figures.get(step.nodes[0], 400.0)
        collective = next(name for name in ("all_reduce", "alltoall") if f"{name}_perf" in step.command[-1])
        text = "" if reached is None else table(step.nodes, SIZES, reached, per_node=8, collective=collective)
        return Output(text, 0 if reached is not None else 1)

    def cancel(self):
        """Nothing runs."""


def scopes(manager, units=4, **burnin):
    nodes = [make_node(f"w{n}", n, sku=SKU, switch=f"su{(n - 1) // 2}") for n in range(1, 2 * units + 1)]
    cluster = make_cluster(*nodes)
    cluster = cluster.model_copy(update={"burnin": cluster.burnin.model_copy(update=burnin)})
    engine = engine_for(cluster.burnin, nodes[0])
    plan = plan_of(cluster.burnin, engine, SKU, "acceptance", None)
    return measure_scopes(Measurer(engine, manager, lambda text: None), cluster, tuple(nodes), plan)


def test_each_unit_and_each_rail_of_it_is_measured():
    manager = Manager()
    found = scopes(manager)
    assert found.findings == ()
    assert {(one.scope, one.collective) for one in found.figures} == {
        (scope, collective) for scope in ("unit", "leaf") for collective in ("all_reduce", "alltoall")
    }
    assert len(manager.steps) == 16
    assert {step.environment.get("NCCL_TESTS_SPLIT") for step in manager.steps} == {None, "MOD 8"}


def test_a_unit_under_the_floor_of_its_size_is_named():
    found = scopes(Manager(w3=300.0), floors_by_nodes={2: 380.0})
    failed = [one for one in found.findings if one.text.startswith("all_reduce within")]
    assert [(one.status, one.text.split(" is below")[0]) for one in failed] == [
        (Status.FAIL, "all_reduce within w[3-4]: 300 GB/s at 8589934592 B")
    ]


def test_without_a_floor_a_unit_is_compared_with_the_others():
    found = scopes(Manager(w3=300.0))
    assert {one.status for one in found.findings} == {Status.FAIL}
    assert found.findings[0].text == (
        "all_reduce within w[3-4]: 300 GB/s at 8589934592 B, the median of 4 units is 400"
    )
    assert scopes(Manager(w3=300.0), units=2).findings == (), (
        "of two units neither is known to be the slow one"
    )


def test_a_unit_without_a_figure_is_unknown():
    found = scopes(Manager(w3=None))
    assert {one.status for one in found.findings} == {Status.UNKNOWN}
    assert all("w[3-4]: " in one.text for one in found.findings)


def test_one_unit_is_what_all_nodes_are():
    manager = Manager()
    assert scopes(manager, units=1).figures == ()
    assert manager.steps == []


def test_through_its_ports_a_node_is_compared_with_the_others():
    node = make_node("w1", 1, sku=SKU)
    manager = Manager(w2=20.0)
    measurer = Measurer(engine_for(make_cluster(node).burnin, node), manager, lambda text: None)
    measurer.manager.states = dict
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rackwright.burnin.per_node.not_ready", lambda manager, nodes: {})
        found = measure_loopback(measurer, ("w1", "w2", "w3"), (2**30, 2**33))
    [slow] = found.findings
    assert slow.status is Status.FAIL
    assert slow.text.startswith(
        "w2 alone through their ports: 20 GB/s at 8589934592 B, 95 % below the median of 400"
    )
    assert manager.steps[0].environment["NCCL_P2P_DISABLE"] == "1"
