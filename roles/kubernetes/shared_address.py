"""The API's common address: keepalived moves it to a node whose kube-apiserver is ready, haproxy reaches all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackwright.render import render

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.kubernetes.options import KubernetesOptions

HAPROXY = "/etc/haproxy/haproxy.cfg"
HAPROXY_LIMITS = "/etc/systemd/system/haproxy.service.d/rackwright.conf"
KEEPALIVED = "/etc/keepalived/keepalived.conf"
READY = "/usr/local/sbin/rackwright-apiserver-ready"
_CA = "/etc/kubernetes/pki/ca.crt"


def files(options: KubernetesOptions, cluster: Cluster, node: Node) -> dict[str, str]:
    """Their files by path; none with a single control-plane node."""
    plane = options.control_plane
    if plane.address is None:
        return {}
    nodes = options.control_planes(cluster)
    own = cluster.management_address(node)
    servers = [(other.name, cluster.management_address(other)) for other in nodes]
    return {
        HAPROXY: render(
            "kubernetes/haproxy.cfg.j2",
            address=plane.address,
            shared_port=plane.shared_port,
            port=plane.port,
            servers=servers,
            ca=_CA,
            connections=plane.connections_max,
        ),
        HAPROXY_LIMITS: render("kubernetes/haproxy.conf.j2", files=2 * plane.connections_max + 200),
        READY: render("kubernetes/apiserver-ready.sh.j2", own=own, port=plane.port, ca=_CA),
        KEEPALIVED: render(
            "kubernetes/keepalived.conf.j2",
            program=READY,
            interface=plane.interface,
            router_id=plane.router_id,
            priority=100 - 2 * [other.name for other in nodes].index(node.name),
            own=own,
            peers=[address for name, address in servers if name != node.name],
            address=plane.address,
            prefix=cluster.management.cidr.prefixlen,
        ),
    }
