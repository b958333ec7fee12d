"""Options of the kubernetes_scheduling role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from rackwright.model.kubernetes_offers import SetsChartValues
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.types import NodeRole, Workload
from rackwright.roles.kubernetes_scheduling.entities import Account, GroupName, Name, Qos, User, UserName
from rackwright.roles.kubernetes_scheduling.kueue_config import chart_values_of
from rackwright.roles.kubernetes_scheduling.problems import problems_of, warnings_of

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node


class Kueue(Frozen):
    """Queues by Kueue, which is an add-on of kubernetes_addons."""

    api: Literal["v1beta1", "v1beta2"] = Field(
        default="v1beta2",
        description="Version of its API: v1beta2 from Kueue 0.15; v1beta1 for older releases.",
    )
    borrowing: bool = Field(
        default=True,
        description="An account may use what others leave idle, until they want it back. false: its limit is a hard one.",
    )
    fair_sharing: bool = Field(
        default=True,
        description="What is idle is shared by `fairshare`; needs Kueue's chart from kubernetes_addons.",
    )


class KubernetesSchedulingOptions(RoleOptions, SetsChartValues):
    """Namespaces, quotas, priorities and access for accounts; queues with Kueue."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD})
    workloads: ClassVar[frozenset[Workload]] = frozenset({Workload.KUBERNETES, Workload.SLURM_ON_KUBERNETES})

    accounts: dict[Name, Account] = Field(
        default_factory=dict,
        description="Accounts by name. None here: accounts, users and QOS are those of the role slurm in this file.",
    )
    users: dict[UserName, User] = Field(
        default_factory=dict, description="Users by the name that they log in with."
    )
    qos: dict[Name, Qos] = Field(default_factory=dict)
    default_qos: Name | None = Field(default=None, description="QOS of pods that name none.")
    groups: dict[Name, tuple[GroupName, ...]] = Field(
        default_factory=dict, description="Groups of the identity provider that may use an account."
    )
    name_prefix: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9_.:/-]{0,60}$",
        description="Before user and group names, as the API server knows them, e.g. `oidc:`.",
    )
    namespace_prefix: str = Field(
        default="", pattern=r"^([a-z][a-z0-9-]{0,20})?$", description="Before each account's namespace."
    )
    default_cpu_millis: int = Field(
        default=1000, ge=10, description="CPU request of containers that name none, in thousandths of a CPU."
    )
    default_memory_mib: int = Field(
        default=2048, ge=16, description="Memory request of containers that name none."
    )
    pods_max: int | None = Field(default=None, ge=1, description="Pods of each account; None: no limit.")
    pod_security: Literal["privileged", "baseline", "restricted"] | None = Field(
        default=None, description="Pod Security level of the namespaces, from 1.23. None: the cluster's."
    )
    isolation: bool = Field(
        default=True,
        description="Pods accept connections from their own account alone. It takes a network that enforces "
        "NetworkPolicy: cilium or calico.",
    )
    kueue: Kueue | None = Field(default=None, description="None: without Kueue.")

    def runs_on(self, node: Node) -> bool:
        """On the primary head, where objects are applied."""
        return super().runs_on(node) and node.primary

    def chart_values(self, cluster: Cluster) -> Mapping[str, Mapping[str, Any]]:
        """Kueue's configuration."""
        return chart_values_of(self)

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Mistakes that only show against the resolved cluster."""
        return problems_of(self, cluster)

    def warnings(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Settings that Kubernetes cannot keep as Slurm does."""
        return warnings_of(self, cluster)
