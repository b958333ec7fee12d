"""Objects of the API that belong to the cluster as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rackwright.kubernetes.objects import Object
    from rackwright.model.cluster import Cluster
    from rackwright.roles.kubernetes.options import KubernetesOptions

_RBAC = "rbac.authorization.k8s.io"


def objects(options: KubernetesOptions, cluster: Cluster) -> list[Object]:
    """Nodes may read all nodes, which their health checks count: newer servers let a node see itself alone (1.32)."""
    return [
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "rackwright-nodes"},
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}],
        },
        _bound("rackwright-nodes", "rackwright-nodes", "system:nodes"),
    ]


def _bound(name: str, role: str, group: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group}],
    }
