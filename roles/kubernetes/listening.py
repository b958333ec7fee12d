"""On which ports Kubernetes listens besides those that only the node itself reaches. Pure functions.

Ports: kubernetes.io, "Ports and Protocols" (read 2026-11-28).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackwright.model.services import Listener

if TYPE_CHECKING:
    from rackwright.model.cluster import Node
    from rackwright.roles.kubernetes.options import KubernetesOptions


def listeners_of(options: KubernetesOptions, node: Node) -> tuple[Listener, ...]:
    """Pods reach the API and the kubelet from the pod network."""
    pods = (options.pod_network,)
    found = [Listener("kubelet", (10250, 10250), sources=pods), Listener("kube-proxy", (10256, 10256))]
    plane = options.control_plane
    if options.runs_control_plane(node):
        found.append(Listener("kube-apiserver", (plane.port, plane.port), sources=pods))
        found.append(Listener("etcd", (2379, 2380)))
        if plane.address is not None:
            found.append(Listener("haproxy", (plane.shared_port, plane.shared_port), sources=pods))
    return tuple(found)
