"""A small site with an InfiniBand or RoCE fabric of two rails, for the tests of the fabric's roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright.model.cluster import Cluster
from rackwright.model.options import RoleOptions
from rackwright.model.sku import Nic
from rackwright.model.types import LinkKind, NetworkPurpose, NodeRole, Platform
from tests.factories import DEBIAN_13, make_address, make_cluster, make_gpu_sku, make_network, make_node


def networks(kind: LinkKind, **changes: Any):
    fields: dict[str, Any] = {"kind": kind, "rails": 2, "rail_prefix": 24, **changes}
    return {
        "management": make_network("management", "10.9.0.0/24"),
        "fabric": make_network("fabric", "10.11.0.0/16", **fields),
    }


def sku(kind: LinkKind, **changes: Any):
    nics = tuple(
        Nic(purpose=NetworkPurpose.FABRIC, kind=kind.port, speed_gbps=400, rail=rail) for rail in range(2)
    )
    return make_gpu_sku(nics=nics, **changes)


def fabric_site(
    options: Mapping[str, RoleOptions],
    *,
    kind: LinkKind = LinkKind.INFINIBAND,
    os=DEBIAN_13,
    platform: Platform = Platform.BARE_METAL,
    nodes: Mapping[str, Any] | None = None,
    network: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Cluster:
    """head1, head2 and gpu1 to gpu3 on both rails; login1 on the management network alone."""
    shared: dict[str, Any] = {"os": os, "platform": platform, "options": dict(options), **(nodes or {})}
    found = []
    for number, (name, role) in enumerate(
        (
            ("head1", NodeRole.HEAD),
            ("head2", NodeRole.LOGIN),
            ("gpu1", NodeRole.WORKER),
            ("gpu2", NodeRole.WORKER),
            ("gpu3", NodeRole.WORKER),
        ),
        10,
    ):
        addresses = (
            make_address("management", f"10.9.0.{number}"),
            make_address("fabric", f"10.11.0.{number}"),
            make_address("fabric", f"10.11.1.{number}", rail=1),
        )
        found.append(make_node(name, number, role, addresses=addresses, **{"sku": sku(kind), **shared}))
    found.append(make_node("login1", 99, NodeRole.LOGIN, **shared))
    return make_cluster(*found, **{"networks": networks(kind, **(network or {})), **changes})
