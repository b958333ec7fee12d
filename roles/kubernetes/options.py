"""Options of the kubernetes role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from rackwright.model.backups import BacksUp, BackupPart
from rackwright.model.interfaces import (
    GoesFirst,
    HoldsPackages,
    NeedsForwarding,
    RunsKubernetes,
    WritesUnitFiles,
)
from rackwright.model.mirrored import MirrorItem, NeedsMirrored
from rackwright.model.options import RoleOptions
from rackwright.model.services import Listener, Listens
from rackwright.model.types import NodeRole, Workload, WorkloadManager
from rackwright.roles.kubernetes.sections import (
    Audit,
    ControlPlane,
    Images,
    Kubelet,
    LabelKey,
    LabelValue,
    Oidc,
    Packages,
    Snapshots,
    Taint,
)

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node


class KubernetesOptions(
    BacksUp,
    GoesFirst,
    HoldsPackages,
    Listens,
    NeedsForwarding,
    NeedsMirrored,
    RunsKubernetes,
    WritesUnitFiles,
    RoleOptions,
):
    """Kubernetes by kubeadm; one section for the whole cluster."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD, NodeRole.WORKER})
    workloads: ClassVar[frozenset[Workload]] = frozenset({Workload.KUBERNETES, Workload.SLURM_ON_KUBERNETES})
    secrets: ClassVar[tuple[str, ...]] = (
        "kubernetes_ca_key",
        "kubernetes_etcd_ca_key",
        "kubernetes_front_proxy_ca_key",
        "kubernetes_service_account_signing_key",
        "kubernetes_encryption_key",
    )
    workload_manager: ClassVar[WorkloadManager] = WorkloadManager.KUBERNETES

    version: str = Field(
        pattern=r"^1\.[0-9]{2}\.[0-9]{1,3}$",
        description="Exact release, e.g. 1.34.2; another patch or the next minor release is an upgrade in waves.",
    )
    packages: Packages = Packages()
    images: Images = Images()
    mirror: Path | None = Field(
        default=None,
        description="JSON beside the cluster file: the package archive of a site's mirror, and images as archives for "
        "sites without a registry; `rackwright lab up` writes it for lab racks.",
    )
    control_plane: ControlPlane = ControlPlane()
    pod_network: IPv4Network = Field(
        default=IPv4Network("10.244.0.0/16"), description="Addresses of pods; no other network overlaps it."
    )
    pod_prefix: int = Field(default=24, ge=20, le=28, description="Prefix length of each node's part of it.")
    service_network: IPv4Network = Field(default=IPv4Network("10.96.0.0/16"))
    dns_domain: str = Field(default="cluster.local", pattern=r"^[a-z0-9]([a-z0-9.-]{0,60}[a-z0-9])?$")
    network: Literal["routes", "cilium", "calico", "flannel"] = Field(
        default="routes",
        description="How pods reach each other. routes: a route to each node's pods on every node, which needs one layer-2 "
        "network and no image, and enforces no NetworkPolicy. The others are applied by kubernetes_addons.",
    )
    proxy_mode: Literal["iptables", "nftables", "ipvs"] = Field(
        default="iptables", description="kube-proxy's; nftables from 1.31 on."
    )
    labels: dict[LabelKey, LabelValue] = Field(
        default_factory=dict, description="Labels of the nodes, besides those of the declaration."
    )
    taints: tuple[Taint, ...] = Field(default=(), description="Taints that a node registers with.")
    kubelet: Kubelet = Kubelet()
    snapshots: Snapshots = Snapshots()
    audit: Audit = Audit()
    encrypt_secrets: bool = Field(default=True, description="Secrets are encrypted in etcd (secretbox).")
    pod_security: Literal["privileged", "baseline", "restricted"] = Field(
        default="baseline",
        description="PodSecurity level of namespaces that do not name one, from 1.23; kube-system is exempt.",
    )
    oidc: Oidc | None = None
    certificate_days_min: int = Field(
        default=30,
        ge=2,
        le=300,
        description="Certificates that expire earlier are renewed, daily, by a timer.",
    )
    core_spec_count: int = Field(
        default=0, ge=0, description="As in Slurm: cores kept from jobs; see `kubelet.reserved_cpus`."
    )
    node_fields: ClassVar[frozenset[str]] = frozenset({"labels", "taints", "kubelet"})
    """What may differ between nodes."""

    def runs_control_plane(self, node: Node) -> bool:
        """Whether a node belongs to the control plane."""
        names = self.control_plane.nodes
        return node.name in names if names else node.holds(NodeRole.HEAD)

    def control_planes(self, cluster: Cluster) -> tuple[Node, ...]:
        """The primary head first, if it is one."""
        found = [node for node in cluster.running("kubernetes") if self.runs_control_plane(node)]
        return tuple(sorted(found, key=lambda node: not node.primary))

    def endpoint(self, cluster: Cluster) -> str:
        """`address:port` of the API, as every node and client has it."""
        plane = self.control_plane
        if plane.address is not None:
            return f"{plane.address}:{plane.shared_port}"
        return f"{cluster.management_address(self.control_planes(cluster)[0])}:{plane.port}"

    @property
    def burnin_image(self) -> str | None:
        """The image that the burn-in's pods run."""
        return self.images.burnin

    def mirrored(self, cluster: Cluster, node: Node) -> Iterable[MirrorItem]:
        """Images of Kubernetes' own components, and of the checks and the burn-in."""
        from rackwright.roles.kubernetes.images import items_of

        return items_of(self, node)

    def goes_first(self, node: Node) -> bool:
        """Nodes join through the API."""
        return self.runs_control_plane(node)

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Mistakes that only show against the resolved cluster."""
        from rackwright.roles.kubernetes.problems import problems_of

        return problems_of(self, cluster)

    def lock_problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """A mirror file that is invalid."""
        from rackwright.roles.kubernetes.problems import mirror_problems

        return mirror_problems(self, cluster)

    def warnings(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """A mirror file that does not exist yet, images that a mirror needs and nothing lists."""
        from rackwright.roles.kubernetes.problems import mirror_warnings, tag_warnings

        return (*mirror_warnings(self, cluster), *tag_warnings(self))

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """Daemons of the node; pods reach the API and the kubelet from the pod network."""
        from rackwright.roles.kubernetes.listening import listeners_of

        return listeners_of(self, node)

    def held_packages(self, node: Node) -> tuple[str, ...]:
        """Kubernetes' own."""
        return ("kubeadm", "kubectl", "kubelet")

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """Units and drop-ins."""
        from rackwright.roles.kubernetes.texts import unit_files_of

        return unit_files_of(self, node)

    def backup_parts(self, cluster: Cluster, node: Node) -> tuple[BackupPart, ...]:
        """A snapshot of etcd, of the primary head."""
        from rackwright.roles.kubernetes.etcd import parts_of

        return parts_of(self, node)

    def overwritten_by_restore(self, cluster: Cluster, node: Node) -> Mapping[str, str]:
        """Objects of users in the cluster."""
        from rackwright.roles.kubernetes.etcd import probes_of

        return probes_of(self, node)
