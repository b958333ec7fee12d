"""Options of the slurm_on_kubernetes role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from rackwright.model.interfaces import RunsKubernetes
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.services import BuildsPodImages, Listener, Listens, PodImage
from rackwright.model.strings import NodePath, PackageName
from rackwright.model.types import NetworkPurpose, NodeRole, Workload
from rackwright.workload.slurm.pods import Container, RunsSlurmPods

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node

Label = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
"""A DNS label (RFC 1123), as names of namespaces and storage classes are."""
ImageName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][A-Za-z0-9._/:@-]{0,250}$")]
Tag = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$")]
Quantity = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,9}(Mi|Gi|Ti)$")]
ResourceName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9.-]{1,100}/[a-z0-9.-]{1,60}$")]

EPHEMERAL = (32768, 60999)
"""net.ipv4.ip_local_port_range as Linux ships it (Documentation/networking/ip-sysctl.rst, read 2026-11-24)."""
SLURMD_PORT = 6818
"""On the host's network, where a node's firewall knows only this role; `problems` compares it with the slurm section."""


class Login(Frozen):
    """The pod that users log in to with ssh and submit jobs from."""

    enabled: bool = True
    port: int = Field(
        default=2222,
        ge=1,
        le=65535,
        description="Port of its sshd; on the host's network not the node's own port.",
    )


class Volumes(Frozen):
    """Where slurmctld's state and the database are kept."""

    storage_class: Label | None = Field(
        default=None,
        description="StorageClass of persistent volume claims. None: folders of the primary head (`folder`), to which "
        "these pods are bound.",
    )
    folder: NodePath = Field(
        default="/var/lib/rackwright-slurm", description="On the primary head, without a storage class."
    )
    state_size: Quantity = "10Gi"
    database_size: Quantity = "50Gi"
    buffer_pool_mib: int = Field(
        default=4096,
        ge=64,
        description="innodb_buffer_pool_size of the database's pod (Slurm's accounting guide: 4 GiB or more).",
    )


class SlurmOnKubernetesOptions(BuildsPodImages, Listens, RunsSlurmPods, RoleOptions):
    """Slurm's daemons as pods of Kubernetes, with the settings of the slurm section (`daemons: pods`)."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD, NodeRole.WORKER})
    workloads: ClassVar[frozenset[Workload]] = frozenset({Workload.SLURM_ON_KUBERNETES})
    secrets: ClassVar[tuple[str, ...]] = (
        "munge_key",
        "slurmdbd_password",
        "slurm_login_ssh_key",
        "slurm_jwt_key",
        "slurm_auth",
    )

    flavour: Literal["pods", "soperator", "slinky"] = Field(
        default="pods",
        description="pods: this role's own objects. soperator, slinky: custom resources for Nebius' Soperator or SchedMD's "
        "Slinky slurm-operator, which the site has installed.",
    )
    namespace: Label = "slurm"
    image: ImageName | None = Field(
        default=None,
        description="Image of all daemons; `rackwright image pods` builds it. None: `slurm:RELEASE` of `registry`.",
    )
    registry: ImageName = Field(
        default="rack.lab", description="Registry and path of the image, as nodes pull it."
    )
    operator_tag: Tag | None = Field(
        default=None,
        description="Tag of the operator's images in `registry`, with soperator and slinky. None: Slurm's release.",
    )
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    image_packages: tuple[PackageName, ...] = Field(
        default=(), description="Further packages in the image, e.g. openmpi-bin."
    )
    network: Literal["host", "pod"] = Field(
        default="host",
        description="Network of slurmd and the login pod. host: the node's, with RDMA. pod: the pod network.",
    )
    gpu_resource: ResourceName | None = Field(
        default="nvidia.com/gpu",
        description="Resource by which slurmd's pod takes all GPUs of its node, so that no other pod gets one. None: none is "
        "asked for, since no device plugin runs.",
    )
    memory_headroom_mib: int = Field(
        default=256,
        ge=0,
        description="Memory of slurmd's pod beyond what Slurm gives to jobs (RealMemory), for slurmd and munged.",
    )
    reserve: bool = Field(
        default=True,
        description="slurmd's pod requests the memory that Slurm gives to jobs, so that Kubernetes places no other pods in it.",
    )
    volumes: Volumes = Volumes()
    login: Login = Login()
    priority: int = Field(
        default=1_000_000,
        ge=0,
        le=1_000_000_000,
        description="Of the priority class of Slurm's pods: others are evicted first.",
    )
    rest_api: bool = Field(
        default=False,
        description="slurmrestd, with soperator and slinky; tokens are signed with slurm_jwt_key.",
    )

    @property
    def controller(self) -> Container | None:
        """slurmctld's container, where rackwright drains nodes; an operator has its own."""
        if self.flavour != "pods":
            return None
        return Container(self.namespace, "slurmctld-0", "slurmctld")

    def reference(self, cluster: Cluster) -> str:
        """The image that pods run."""
        from rackwright.roles.slurm_on_kubernetes.places import slurm_of
        from rackwright.workload.slurm.pods import names_of

        if self.image is not None:
            return self.image
        return f"{self.registry}/slurm:{names_of(slurm_of(cluster).pod_release(cluster))}"

    def pod_images(self, cluster: Cluster) -> tuple[PodImage, ...]:
        """One for all daemons; the operators bring their own."""
        from rackwright.roles.slurm_on_kubernetes.image import pod_image

        return (pod_image(self, cluster),) if self.flavour == "pods" else ()

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Mistakes that only show against the resolved cluster."""
        from rackwright.roles.slurm_on_kubernetes.problems import problems_of

        return problems_of(self, cluster)

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """On the host's network: slurmd, steps of jobs and srun, and the login pod's sshd on the primary head."""
        if self.flavour != "pods" or self.network != "host":
            return ()
        inner = frozenset({NetworkPurpose.MANAGEMENT, NetworkPurpose.FABRIC, NetworkPurpose.STORAGE})
        outside = frozenset({NetworkPurpose.MANAGEMENT, NetworkPurpose.EXTERNAL})
        kubernetes = node.offers(RunsKubernetes)
        pods = (kubernetes.pod_network,) if kubernetes is not None else ()
        found = []
        if node.holds(NodeRole.WORKER):
            found += [Listener("slurmd", (SLURMD_PORT, SLURMD_PORT), sources=pods)]
            found += [Listener(name, EPHEMERAL, purposes=inner) for name in ("slurmstepd", "srun")]
        if node.primary and self.login.enabled:
            found += [Listener("sshd", (self.login.port, self.login.port), purposes=outside)]
            found += [Listener("srun", EPHEMERAL, purposes=inner)]
        return tuple(found)
