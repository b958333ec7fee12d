"""haproxy's files. Pure functions."""

from __future__ import annotations

from rackwright.model.cluster import Cluster
from rackwright.render import render
from rackwright.roles.load_balancer.options import FOLDER, UNIT_FILE, LoadBalancerOptions

CONF = f"{FOLDER}/services.cfg"
SOCKET = "/run/rackwright-load-balancer/status.sock"


def files(cluster: Cluster, options: LoadBalancerOptions) -> dict[str, str]:
    """The configuration and the unit, by path."""
    services = [
        (
            name,
            one,
            [(node.name, cluster.management_address(node)) for node in options.targets(cluster, name)],
        )
        for name, one in options.services.items()
    ]
    return {
        CONF: render(
            "load_balancer/services.cfg.j2",
            services=services,
            socket=SOCKET,
            connections=options.connections_max,
            chain=f"{FOLDER}/services.pem",
        ),
        UNIT_FILE: render(
            "load_balancer/load-balancer.service.j2", conf=CONF, files=2 * options.connections_max + 200
        ),
    }
