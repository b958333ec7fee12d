"""Panels that a cluster cannot have, and why."""

from __future__ import annotations

import pytest

from rackwright.dashboards.catalogue import BY_NAME, DASHBOARDS
from rackwright.dashboards.sources import for_cluster, left_out, why_left_out
from rackwright.model.monitoring import Probe, Scrape
from rackwright.model.types import NodeRole, Platform
from tests.factories import make_cluster, make_gpu_sku, make_node
from tests.unit.dashboards.site import EVERY_NODE, HEAD, Serves, large

LARGE = large()


def panel(name):
    dashboard, _, title = name.partition(": ")
    return next(one for one in BY_NAME[dashboard].panels if one.title == title)


def small(*jobs, **changes):
    """A worker in a lab container that serves these jobs."""
    node = make_node("head1", 10, NodeRole.HEAD, options={"exporters": Serves(served=jobs)}, **changes)
    return make_cluster(node)


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.name)
def test_a_cluster_that_has_everything(dashboard):
    assert for_cluster(dashboard, LARGE) == dashboard
    assert left_out(dashboard, LARGE) == {}


@pytest.mark.parametrize(
    ("name", "cluster", "reason"),
    [
        (
            "overview: GPU power",
            small(*EVERY_NODE),
            "nothing serves metrics of the job `dcgm` in this cluster",
        ),
        ("queue: Running", small(*EVERY_NODE), "nothing serves metrics of the job `slurm` in this cluster"),
        (
            "waste: Idle GPU hours by user",
            small(*HEAD),
            "nothing serves metrics of the job `dcgm` in this cluster",
        ),
        ("power: Fans", small(*EVERY_NODE), "nothing serves metrics of the job `ipmi` in this cluster"),
        ("overview: GPUs declared, held and busy", small(*HEAD), "no node has GPUs"),
        ("fabric: Throughput", small(*EVERY_NODE), "no InfiniBand or RoCE network is declared"),
        ("fabric: Retransmissions (RoCE)", small(*EVERY_NODE), "no RoCE network is declared"),
        ("storage: Requests", small(*EVERY_NODE), "no node mounts an NFS filesystem"),
        ("storage: Served by file servers", small(*EVERY_NODE), "no node serves an NFS filesystem"),
        ("node: Clock", small(*EVERY_NODE), "a container shares its host's clock and cannot set it"),
        (
            "node: Memory errors",
            small(*EVERY_NODE),
            "a container's slots, sensors and links belong to its host",
        ),
        ("health: Failed checks", small(*EVERY_NODE), "no worker checks its own health"),
        ("overview: CPU busy", small(*EVERY_NODE), None),
        ("overview: Alerts", small(*EVERY_NODE), None),
        ("node: Memory errors", small(*EVERY_NODE, platform=Platform.BARE_METAL), None),
        (
            "fabric: Throughput",
            make_cluster(
                make_node("head1", 10, NodeRole.HEAD, options={"exporters": Serves(served=EVERY_NODE)}),
                networks=LARGE.networks,
            ),
            "a container's slots, sensors and links belong to its host",
        ),
    ],
)
def test_why_a_panel_is_left_out(name, cluster, reason):
    assert why_left_out(panel(name), cluster) == reason


def test_an_expression_that_the_cluster_cannot_have_leaves_its_panel():
    """GPUs that are declared and in Slurm, without DCGM that says how many are busy."""
    options = {"exporters": Serves(served=HEAD)}
    cluster = make_cluster(make_node("head1", 10, NodeRole.HEAD, sku=make_gpu_sku(), options=options))
    found = next(
        one
        for one in for_cluster(BY_NAME["overview"], cluster).panels
        if one.title == "GPUs declared, held and busy"
    )
    assert [one.legend for one in found.expressions] == ["declared", "in Slurm", "held"]


def test_a_dashboard_without_panels_has_no_rows():
    assert for_cluster(BY_NAME["gpu"], small(*EVERY_NODE)).rows == ()
    assert len(left_out(BY_NAME["gpu"], small(*EVERY_NODE))) == len(list(BY_NAME["gpu"].panels))


def test_what_one_node_has():
    head, worker = LARGE.by_name["head1"], LARGE.by_name["gpu1"]
    assert why_left_out(panel("node: GPU power"), LARGE, worker) is None
    assert why_left_out(panel("node: GPU power"), LARGE, head) == (
        "nothing serves metrics of the job `dcgm` for this node"
    )
    assert why_left_out(panel("node: Jobs on this node"), LARGE, worker) is None, "the head tells of it"
    assert why_left_out(panel("node: Failed checks"), LARGE, head) == "no worker checks its own health"


def test_a_probe_tells_of_other_nodes():
    probing = Serves(
        served=(*EVERY_NODE, Scrape("ipmi", 9290, probes=(Probe("10.9.1.11", {"node": "gpu1"}),)))
    )
    cluster = make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options={"exporters": probing}), make_node("gpu1", 11)
    )
    assert why_left_out(panel("node: Power of the node"), cluster, cluster.by_name["gpu1"]) is None
    assert why_left_out(panel("node: Load and CPUs"), cluster, cluster.by_name["gpu1"]) is not None
    assert why_left_out(panel("node: Power of the node"), cluster, cluster.by_name["head1"]) is not None, (
        "the head's own BMC is not declared"
    )
