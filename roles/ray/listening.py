"""On which ports Ray listens. Pure functions.

Process names as the kernel has them on Debian 12 with Ray 2.60 (ss -ltnp, 2026-11-28).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackwright.model.services import Listener
from rackwright.model.types import NetworkPurpose

if TYPE_CHECKING:
    from rackwright.model.cluster import Node
    from rackwright.roles.ray.options import RayOptions

_EPHEMERAL = (32768, 60999)
_NOWHERE: frozenset[NetworkPurpose] = frozenset()


def listeners_of(options: RayOptions, node: Node) -> tuple[Listener, ...]:
    """What other nodes reach by TLS with the token, or by HTTP with the token; the rest is for the node itself."""
    ports = options.ports
    workers = (ports.first_worker, ports.last_worker)
    everywhere = (
        Listener("raylet", (ports.node_manager, ports.node_manager)),
        Listener("raylet", (ports.object_manager, ports.object_manager)),
        Listener("ray::DashboardA", (ports.agent_grpc, ports.agent_grpc)),
        Listener("ray::DashboardA", (ports.agent_http, ports.agent_http)),
        Listener("ray::RuntimeEnv", (ports.runtime_env, ports.runtime_env)),
        Listener("ray::DashboardA", (ports.metrics, ports.metrics), purposes=_NOWHERE),
        Listener("ray::*", workers),  # each process is named after the task or actor that it runs
    )
    if not options.is_head(node):
        return everywhere
    return (
        *everywhere,
        Listener("gcs_server", (ports.gcs, ports.gcs)),
        Listener("python", (ports.client, ports.client)),
        Listener("python", (ports.dashboard, ports.dashboard), purposes=_NOWHERE),
        Listener("python", _EPHEMERAL, purposes=_NOWHERE),  # metrics of the dashboard and of the autoscaler
        Listener("redis-server", (ports.redis, ports.redis), purposes=_NOWHERE),
    )
