"""Labels of a GPU node: what they are, and the shell that reads and sets them. Pure functions."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from rackwright.kubernetes.gpu_names import OWNED, labels
from rackwright.model.interfaces import RunsKubernetes

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.gpu_stack_k8s.options import GpuStackK8sOptions

_KUBECTL = f"kubectl --kubeconfig {RunsKubernetes.kubelet_kubeconfig} --request-timeout=10s"
_EACH = r"""{{range $key, $value := .metadata.labels}}{{$key}}={{$value}}{{"\n"}}{{end}}"""


def declared(options: GpuStackK8sOptions, cluster: Cluster, node: Node) -> dict[str, str]:
    """GFD's labels of a node, from its SKU and MIG layout; none without GPUs."""
    if node.sku.gpus is None:
        return {}
    strategy, name = options.strategy(cluster), options.product(node)
    return dict(sorted(labels(node.sku.gpus, node.mig, strategy, name, options.time_slices).items()))


def lines(wanted: dict[str, str]) -> str:
    """`key=value`, sorted, as `read` prints them."""
    return "\n".join(sorted(f"{key}={value}" for key, value in wanted.items()))


def read(node: Node) -> str:
    """Prints the node's own labels of those names; nothing where the API does not answer."""
    return (
        f"{_KUBECTL} get node {quote(node.name)} -o go-template={quote(_EACH)} "
        f"| grep -E {quote(f'^({OWNED.pattern})=')} | LC_ALL=C sort"
    )


def write(node: Node, wanted: dict[str, str]) -> str:
    """Sets them as the node itself, whose rights end at its own labels, and removes the names not declared."""
    keys = " ".join(f"-e {quote(key)}" for key in wanted)
    pairs = " ".join(quote(f"{key}={value}") for key, value in wanted.items())
    return f"""
gone=$({read(node)} | cut -d= -f1 | grep -vxF {keys} | sed 's/$/-/')
for attempt in $(seq 60); do
    {_KUBECTL} label node {quote(node.name)} --overwrite {pairs} $gone && exit 0
    sleep 2
done
exit 1
"""
