"""The same Ray as an object for KubeRay. Pure functions.

For sites that run Ray in Kubernetes: rackwright renders the object, and installs no KubeRay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rackwright.kubernetes.objects import Object
from rackwright.model.cluster import Cluster, Node
from rackwright.model.python_environment import locked
from rackwright.roles.ray import sizes
from rackwright.roles.ray.options import RayOptions

_MIB = 1024**2


def ray_cluster(cluster: Cluster, options: RayOptions, image: str, nodes: Sequence[Node]) -> Object:
    """A RayCluster (ray.io/v1) with a group of workers for each SKU of these nodes, and token authentication.

    + image: with the Ray of the lock, e.g. `registry.site/ray:2.60.0`
    """
    by_sku: dict[str, list[Node]] = {}
    for node in nodes:
        by_sku.setdefault(node.sku.name, []).append(node)
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": cluster.name, "namespace": "ray"},
        "spec": {
            "rayVersion": min(locked(options.lock_text(cluster))["ray"]),
            "authOptions": {"mode": "token"},
            "headGroupSpec": {
                "rayStartParams": {"num-cpus": str(options.head_cpus)},
                "template": _pod("ray-head", image, {"cpu": "2", "memory": "8Gi"}),
            },
            "workerGroupSpecs": [_group(name, members, options, image) for name, members in by_sku.items()],
        },
    }


def _group(name: str, nodes: Sequence[Node], options: RayOptions, image: str) -> dict[str, Any]:
    """One pod for each node of a SKU, as large as Ray on it would be."""
    node = nodes[0]
    memory = sizes.memory_mib(node, options) + sizes.object_store_mib(node, options)
    gpus = sizes.gpus(node)
    wants = {
        "cpu": str(sizes.cpus(node, options)),
        "memory": f"{memory}Mi",
        **({"nvidia.com/gpu": str(gpus)} if gpus else {}),
    }
    return {
        "groupName": name.lower().replace("_", "-"),
        "replicas": len(nodes),
        "minReplicas": len(nodes),
        "maxReplicas": len(nodes),
        "rayStartParams": {"object-store-memory": str(sizes.object_store_mib(node, options) * _MIB)},
        "template": _pod("ray-worker", image, wants),
    }


def _pod(name: str, image: str, wants: Mapping[str, str]) -> dict[str, Any]:
    container = {
        "name": name,
        "image": image,
        "resources": {"limits": dict(wants), "requests": dict(wants)},
    }
    return {"spec": {"automountServiceAccountToken": False, "containers": [container]}}
