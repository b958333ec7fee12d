"""Where Slurm's pods are, and under which names they find each other. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackwright.errors import RackwrightError
from rackwright.kubernetes.commands import KUBECTL
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import RunsKubernetes
from rackwright.model.types import NodeRole
from rackwright.workload.slurm.pods import PodPlaces, RendersSlurm

if TYPE_CHECKING:
    from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions

ROLE = "slurm_on_kubernetes"
CONTROLLER, ACCOUNTING, DATABASE = "slurmctld", "slurmdbd", "mariadb"
SLURMD, LOGIN = "slurmd", "login"


def slurm_of(cluster: Cluster) -> RendersSlurm:
    """Slurm's settings; an error where no role offers them, which `problems` reports first."""
    found = cluster.primary.offers(RendersSlurm)
    if found is None:
        raise RackwrightError(
            f"{cluster.primary.name} has no settings of Slurm.",
            hint="add `slurm: {daemons: pods}` under `roles`",
        )
    return found


def kubernetes_of(cluster: Cluster) -> RunsKubernetes:
    """Kubernetes' options."""
    found = cluster.primary.offers(RunsKubernetes)
    if found is None:
        raise RackwrightError(
            f"{cluster.primary.name} does not run Kubernetes.", hint="add `kubernetes:` under `roles`"
        )
    return found


def slurmd_nodes(cluster: Cluster) -> tuple[Node, ...]:
    """Nodes with a slurmd pod, in file order."""
    return tuple(node for node in cluster.running(ROLE) if node.holds(NodeRole.WORKER))


def domain(options: SlurmOnKubernetesOptions, cluster: Cluster) -> str:
    """DNS domain of the namespace's services."""
    return f"{options.namespace}.svc.{kubernetes_of(cluster).dns_domain}"


def places(options: SlurmOnKubernetesOptions, cluster: Cluster) -> PodPlaces:
    """Names as slurm.conf has them."""
    below = domain(options, cluster)
    return PodPlaces(
        nodes=tuple(node.name for node in slurmd_nodes(cluster)),
        domain=f"{SLURMD}.{below}" if options.network == "pod" else None,
        controller=f"{CONTROLLER}-0",
        controller_address=f"{CONTROLLER}.{below}",
        accounting=f"{ACCOUNTING}-0",
        accounting_address=f"{ACCOUNTING}.{below}",
        database=f"{DATABASE}.{below}",
    )


def own_database(cluster: Cluster) -> bool:
    """Whether the database is a pod; otherwise the slurm section names the server."""
    return slurm_of(cluster).storage[0] == "localhost"


def inside(options: SlurmOnKubernetesOptions, pod: str, container: str) -> str:
    """Shell words that run a program in a container."""
    return f"{KUBECTL} exec --namespace {options.namespace} {pod} --container {container} --"
