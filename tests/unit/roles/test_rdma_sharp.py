"""SHARP in the rdma role: what is refused, NCCL's settings, and the check."""

from __future__ import annotations

import pytest

from rackwright.model.fabric import Cable, Fabric, NodePort, SwitchPort
from rackwright.model.hcas import ReducesInSwitches
from rackwright.model.types import LinkKind
from rackwright.roles.opensm.options import OpensmOptions
from rackwright.roles.rdma.verify import CHECKS
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.test_rdma import made

AT = {"aggregation_manager": "10.9.0.5", "port": 6126}
CHECK = "SHARP aggregation managers accept connections"
ASK = "timeout 10 bash -c 'exec 3<>/dev/tcp/10.9.0.5/6126'"


def fabric(*leaves):
    """Rail r of gpu1 is on the r-th leaf."""
    cables = tuple(
        Cable(NodePort("gpu1", rail), SwitchPort(leaf, rail + 1)) for rail, leaf in enumerate(leaves)
    )
    return Fabric("fabric", LinkKind.INFINIBAND, len(leaves), tuple(dict.fromkeys(leaves)), (), cables)


def sentences(cluster, node, what="problems"):
    return [(path, sentence) for path, sentence, _ in getattr(node.options["rdma"], what)(cluster)]


def test_it_tells_where_switches_reduce():
    _, node = made(sharp={"fabric": AT})
    offers = node.offers(ReducesInSwitches)
    assert (offers.reduces("fabric"), offers.reduces("storage")) == (True, False)


def test_a_network_that_cannot_reduce_is_refused():
    assert sentences(*made(sharp={"fabrik": AT})) == [("sharp.fabrik", "There is no network fabrik.")]
    (found,) = sentences(*made(kind=LinkKind.ROCE, sharp={"fabric": AT}))
    assert found == ("sharp.fabric", "fabric is roce: SHARP is InfiniBand's.")


@pytest.mark.parametrize(
    ("leaves", "problems"),
    [
        (("leaf1", "leaf2", "leaf3"), []),
        (("leaf1", "leaf1"), []),
        (
            ("leaf1", "leaf1", "leaf1"),
            [("sharp.fabric", "leaf1 has rails 0, 1, 2 of fabric: a switch reduces 2 at a time.")],
        ),
    ],
)
def test_a_leaf_with_more_rails_than_flows_is_refused(leaves, problems):
    cluster, node = made(sharp={"fabric": AT})
    cluster = cluster.model_copy(update={"fabrics": {"fabric": fabric(*leaves)}})
    assert sentences(cluster, node) == problems


def test_the_distribution_s_subnet_manager_is_warned_of():
    opensm = OpensmOptions.model_validate({"networks": {"fabric": {"nodes": ["head1"]}}})
    found = sentences(*made(sharp={"fabric": AT}, others={"opensm": opensm}), "warnings")
    assert [path for path, _ in found] == ["sharp.fabric"]
    assert sentences(*made(sharp={"fabric": AT}), "warnings") == []


@pytest.mark.parametrize(
    ("replies", "status", "evidence"),
    [
        ({ASK: ""}, "PASS", "10.9.0.5:6126"),
        (
            {ASK: (1, "", "Connection refused")},
            "FAIL",
            "10.9.0.5:6126, the aggregation manager of fabric, does not accept connections",
        ),
        ({ASK: (124, "", "")}, "FAIL", None),
        ({}, "UNKNOWN", "bash or timeout cannot be run on this node"),
    ],
)
def test_the_aggregation_manager_is_reached(replies, status, evidence):
    cluster, node = made(sharp={"fabric": AT})
    found = judged("rdma", CHECKS, CHECK, cluster, node, FakeHost(replies))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


def test_it_is_not_tried_without_a_port():
    _, node = made(sharp={"fabric": {"aggregation_manager": "10.9.0.5"}})
    assert CHECK not in claimed("rdma", CHECKS, node)
