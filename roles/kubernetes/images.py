"""Images that a node pulls for Kubernetes itself. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackwright.model.mirrored import MirrorItem

if TYPE_CHECKING:
    from rackwright.model.cluster import Node
    from rackwright.roles.kubernetes.options import KubernetesOptions

CONTROL_PLANE = frozenset({"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"})
"""Components that run on control-plane nodes alone."""


def items_of(options: KubernetesOptions, node: Node) -> Iterator[MirrorItem]:
    """One for each image whose tag is known; that of pods' namespaces is the container runtime's."""
    given = options.images
    tags = {"coredns": given.coredns, "kube-proxy": f"v{options.version}"}
    if options.runs_control_plane(node):
        tags |= dict.fromkeys(CONTROL_PLANE, f"v{options.version}") | {"etcd": given.etcd}
    own = (f"{given.registry}/{name}:{tag}" for name, tag in sorted(tags.items()) if tag is not None)
    for reference in (*own, given.probe, given.burnin):
        if reference is not None:
            yield MirrorItem("image", reference, role="kubernetes")
