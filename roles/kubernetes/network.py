"""Pods' addresses and routes, as the declaration gives them: no allocation that a node could lose. Pure functions."""

from __future__ import annotations

import json
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from rackwright.render import render

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.kubernetes.options import KubernetesOptions

CONFLIST = "/etc/cni/net.d/10-rackwright.conflist"
ROUTES = "/etc/rackwright/pod-routes"
MASQUERADE = "/etc/rackwright/pod-routes.nft"
PROGRAM = "/usr/local/sbin/rackwright-pod-routes"
UNIT = "rackwright-pod-routes.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
PROTOCOL = 166
"""Number that marks the routes in the kernel's table; 166 is none of rtnetlink's (iproute2, rt_protos)."""


def pod_network_of(options: KubernetesOptions, cluster: Cluster, node: Node) -> IPv4Network | None:
    """A node's part, numbered as its management address is in its network; None where there are not as many."""
    number = int(cluster.management_address(node)) - int(cluster.management.cidr.network_address)
    if number >= 1 << (options.pod_prefix - options.pod_network.prefixlen):
        return None
    first = int(options.pod_network.network_address) + (number << (32 - options.pod_prefix))
    return IPv4Network((first, options.pod_prefix))


def dns_address(options: KubernetesOptions) -> IPv4Address:
    """CoreDNS' service: the tenth address, as kubeadm has it."""
    return options.service_network.network_address + 10


def conflist(options: KubernetesOptions, cluster: Cluster, node: Node) -> str:
    """A route to each pod on its own pair of interfaces (ptp): no bridge, so all of it passes the node's rules."""
    pods = pod_network_of(options, cluster, node)
    document = {
        "cniVersion": "0.4.0",
        "name": "rackwright",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": False,
                "mtu": cluster.management.mtu,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": str(pods)}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def routes(options: KubernetesOptions, cluster: Cluster, node: Node) -> str:
    """`network gateway` of every other node's pods, a line each."""
    others = [other for other in cluster.running("kubernetes") if other.name != node.name]
    return "".join(
        f"{pod_network_of(options, cluster, other)} {cluster.management_address(other)}\n" for other in others
    )


def files(options: KubernetesOptions, cluster: Cluster, node: Node) -> dict[str, str]:
    """What the unit reads, and the unit."""
    inner = [options.pod_network, options.service_network, *(net.cidr for net in cluster.inner_networks)]
    return {
        CONFLIST: conflist(options, cluster, node),
        ROUTES: routes(options, cluster, node),
        MASQUERADE: render(
            "kubernetes/pod-routes.nft.j2", pods=options.pod_network, inner=", ".join(map(str, inner))
        ),
        PROGRAM: render("kubernetes/pod-routes.sh.j2", routes=ROUTES, rules=MASQUERADE, protocol=PROTOCOL),
        UNIT_FILE: render("kubernetes/pod-routes.service.j2", program=PROGRAM),
    }
