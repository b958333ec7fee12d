"""A declared InfiniBand or RoCE fabric whose ports the SKU does not declare: UNKNOWN, never silence."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from rackwright.catalog.read import catalogue
from rackwright.health.declare import expected_of
from rackwright.health.expected import Expected
from rackwright.health.judge import judge
from rackwright.model.sku import Nic
from rackwright.model.types import LinkKind, NetworkPurpose, NodeRole, Platform
from rackwright.status import Status
from tests.factories import make_address, make_cluster, make_network, make_node
from tests.unit.health.fake_node import document
from tests.unit.health.healthy import healthy

PLAIN = catalogue()["t4-4x"]  # one Ethernet port for management
STORAGE = PLAIN.model_copy(
    update={
        "nics": (
            *PLAIN.nics,
            Nic(purpose=NetworkPurpose.STORAGE, kind=LinkKind.INFINIBAND, speed_gbps=200),
        )
    }
)


def expected(kind, sku=PLAIN, platform=Platform.BARE_METAL):
    networks = {
        "management": make_network("management", "10.9.0.0/24"),
        "fabric": make_network("fabric", "10.8.0.0/24", purpose=NetworkPurpose.FABRIC, kind=kind),
    }
    node = make_node(
        "gpu001", 11, NodeRole.WORKER, sku=sku, platform=platform,
        addresses=(make_address("management", "10.9.0.11"), make_address("fabric", "10.8.0.11")),
    )  # fmt: skip
    return expected_of(make_cluster(make_node("head1", 10, NodeRole.HEAD), node, networks=networks), node)


def judged(wanted, sku=PLAIN):
    found = judge(wanted, document(healthy(sku, wanted)))
    return {result.check: result for result in found if result.check.startswith(("rdma-", "ib-", "roce-"))}


@pytest.mark.parametrize(("kind", "only"), [(LinkKind.ROCE, "roce-gids"), (LinkKind.INFINIBAND, "ib-subnet")])
def test_every_check_of_its_ports_is_unknown(kind, only):
    found = judged(expected(kind))
    assert only in found
    assert len(found) >= 8
    assert (
        found.pop("rdma-ber").status is Status.OUT_OF_SCOPE
    )  # its tool, which also finds the ports, is missing
    for check, result in found.items():
        assert result.status is Status.UNKNOWN, check
        assert f"the declared fabric is {kind}, but the SKU t4-4x declares no {kind} port" in str(
            asdict(result)
        )


@pytest.mark.parametrize(
    ("kind", "sku", "platform"),
    [
        pytest.param(LinkKind.ETHERNET, PLAIN, Platform.BARE_METAL, id="Ethernet"),
        pytest.param(LinkKind.ROCE, PLAIN, Platform.CONTAINER, id="a container"),
        pytest.param(LinkKind.INFINIBAND, catalogue()["dgx-h100"], Platform.BARE_METAL, id="declared ports"),
    ],
)
def test_nothing_is_unknown_where_the_ports_are_declared_or_none_are_needed(kind, sku, platform):
    assert expected(kind, sku, platform).unknown_ports == ()


def test_other_declared_ports_are_judged_all_the_same():
    wanted = expected(LinkKind.ROCE, STORAGE)
    assert wanted.unknown_ports == ("roce",)
    found = judged(wanted, STORAGE)
    assert found["rdma-ports"].status is Status.UNKNOWN
    assert found["rdma-active"].status is Status.PASS
    assert found["ib-subnet"].status is Status.PASS
    assert found["roce-gids"].status is Status.UNKNOWN


def test_it_travels_to_the_node():
    wanted = expected(LinkKind.ROCE)
    assert Expected.from_json(json.loads(json.dumps(wanted.to_json()))) == wanted
