"""SHARP: which networks' switches reduce, where their aggregation manager is, and what has to be so for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from pydantic import Field

from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.documents.nearest import suggest
from rackwright.lock.for_roles import Trouble
from rackwright.model.cluster import Cluster
from rackwright.model.hcas import RunsSubnetManager
from rackwright.model.options import Frozen
from rackwright.model.types import LinkKind

if TYPE_CHECKING:
    from rackwright.roles.rdma.options import RdmaOptions

FLOWS_MAX = 2
"""Streaming aggregation flows that a switch allows; NCCL makes one for each rail (NVIDIA, HPC-X 2.26,
"NCCL-RDMA-SHARP Plugins", read 2026-11-25)."""


class Sharp(Frozen):
    """The aggregation manager of a network, which the site runs: sharp_am, usually UFM's.

    Its clients, HPC-X's libraries in each job, reach it by TCP/IP ("Setting up NVIDIA SHARP Environment", SHARP 3.3.0,
    read 2026-11-25).
    """

    aggregation_manager: IPv4Address = Field(description="Address at which the nodes reach it.")
    port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="TCP port it listens on, as its configuration has it: verify connects to it. None: not tried.",
    )


def problems(sharp: Mapping[str, Sharp], cluster: Cluster) -> Iterator[Trouble]:
    """Networks that cannot reduce."""
    for name in sharp:
        path, network = f"sharp.{name}", cluster.networks.get(name)
        if network is None:
            yield path, f"There is no network {name}.", suggest(name, cluster.networks, what="networks")
            continue
        if network.kind is not LinkKind.INFINIBAND:
            yield path, f"{name} is {network.kind}: SHARP is InfiniBand's.", "remove it"
            continue
        fabric = cluster.fabrics.get(name)
        for leaf in fabric.leaves if fabric is not None else ():
            rails = fabric.rails_of(leaf) if fabric is not None else ()
            if len(rails) > FLOWS_MAX:
                yield (
                    path,
                    f"{leaf} has rails {', '.join(map(str, rails))} of {name}: a switch reduces {FLOWS_MAX} at a time.",
                    "cable each rail to a separate leaf, or leave SHARP out",
                )
                break


def warnings(sharp: Mapping[str, Sharp], cluster: Cluster) -> Iterator[Trouble]:
    """A subnet manager that does not report the topology to the aggregation manager."""
    for name in sharp:
        managers = (node.offers(RunsSubnetManager) for node in cluster.nodes)
        if any(manager.subnet_managers(name) for manager in managers if manager is not None):
            yield (
                f"sharp.{name}",
                f"The distribution's opensm runs {name}, and sharp_am reads what NVIDIA's subnet manager writes.",
                "let UFM run the subnet manager, without the role opensm",
            )


def reachable(context: CheckContext[RdmaOptions]) -> str:
    """Each aggregation manager takes a connection from this node."""
    wrong, good = [], []
    for name, sharp in context.options.sharp.items():
        if sharp.port is None:
            continue
        place = f"{sharp.aggregation_manager}:{sharp.port}"
        result = context.host.run(
            "timeout 10 bash -c %s", f"exec 3<>/dev/tcp/{sharp.aggregation_manager}/{sharp.port}"
        )
        if result.rc in (126, 127):
            raise Undetermined("bash or timeout cannot be run on this node")
        if result.rc != 0:
            wrong.append(f"{place}, the aggregation manager of {name}, does not accept connections")
        good.append(place)
    if wrong:
        fail("; ".join(wrong))
    return ", ".join(good)
