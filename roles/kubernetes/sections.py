"""Nested options of the kubernetes role."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from rackwright.model.options import Frozen
from rackwright.model.package_archive import PackageArchive
from rackwright.model.strings import HttpUrl, InterfaceName, NodePath

LabelKey = Annotated[
    str,
    StringConstraints(
        pattern=r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"
    ),
]
LabelValue = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$")]
Quantity = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,12}(Ki|Mi|Gi|Ti|%)?$")]
Tag = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$")]


COMMUNITY_REGISTRY = "registry.k8s.io"


class Packages(Frozen):
    """Where kubeadm, kubelet and kubectl come from."""

    archive: PackageArchive | None = Field(
        default=None,
        description="None: the community's archive of this release at pkgs.k8s.io, or that of `mirror`.",
    )
    revision: str = Field(
        default="1.1",
        pattern=r"^[0-9A-Za-z.+~]{1,20}$",
        description="Of the packages: what follows the version and a dash.",
    )


class Images(Frozen):
    """Where the images of Kubernetes' own components come from."""

    registry: str = Field(
        default=COMMUNITY_REGISTRY,
        pattern=r"^[a-z0-9][a-z0-9./:_-]{0,200}$",
        description="Registry, with a folder if it has one; a site's mirror keeps the names below it.",
    )
    etcd: Tag | None = Field(default=None, description="Tag of etcd's image; None: kubeadm's choice.")
    coredns: Tag | None = Field(default=None, description="Tag of CoreDNS' image; None: kubeadm's choice.")
    probe: str = Field(
        default="docker.io/library/busybox:1.37",
        pattern=r"^[a-z0-9][A-Za-z0-9./:@_-]{0,254}$",
        description="Image with BusyBox, which verify's pods run.",
    )
    burnin: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9][A-Za-z0-9./:@_-]{0,254}$",
        description="Image of the burn-in: Open MPI, sshd, python3, and nccl-tests on GPU nodes. Not needed otherwise.",
    )


class ControlPlane(Frozen):
    """The nodes of the control plane and their common address."""

    nodes: tuple[str, ...] = Field(
        default=(), description="Heads that run it: 1, 3 or 5. None: all heads of this workload."
    )
    address: IPv4Address | None = Field(
        default=None,
        description="The API's address, which keepalived moves between the nodes; needed with several.",
    )
    port: int = Field(default=6443, ge=1024, le=65535, description="kube-apiserver's port on its own node.")
    shared_port: int = Field(
        default=8443, ge=1024, le=65535, description="haproxy's port on the common address."
    )
    interface: InterfaceName | None = Field(
        default=None,
        description="Interface with the management address, for keepalived; needed with `address`.",
    )
    connections_max: int = Field(
        default=20_000,
        ge=100,
        le=500_000,
        description="Connections through haproxy on one node; a kubelet keeps about five.",
    )
    router_id: int = Field(
        default=66, ge=1, le=255, description="VRRP router; unique among those of the network."
    )
    runs_pods: bool = Field(default=False, description="Pods of users may run there: no taint.")


class Kubelet(Frozen):
    """What of a node pods do not get, and how CPUs and memory are given out."""

    max_pods: int = Field(default=110, ge=1, le=1000)
    reserved_cpus: int | None = Field(
        default=None, ge=0, le=64, description="CPUs for system and kubelet. None: 2 from 16 CPUs on, else 0."
    )
    reserved_memory_mib: int | None = Field(
        default=None, ge=0, description="None: a fiftieth of the SKU's memory, 512 MiB to 16 GiB."
    )
    eviction_memory_mib: int = Field(
        default=500, ge=50, description="Below this much free memory pods are evicted."
    )
    eviction_disk_percent: int = Field(default=10, ge=1, le=50, description="The same for its filesystem.")
    cpu_manager: Literal["none", "static"] | None = Field(
        default=None,
        description="static: whole CPUs for guaranteed pods. None: static where the SKU has GPUs. A change needs an "
        "empty node: its state file is removed.",
    )
    topology_manager: Literal["none", "best-effort", "restricted", "single-numa-node"] | None = Field(
        default=None, description="None: restricted where the SKU has GPUs, else none."
    )
    shutdown_grace_seconds: int = Field(
        default=60, ge=0, le=3600, description="Time that pods get when the node shuts down; from 1.21."
    )
    parallel_pulls: int = Field(default=4, ge=1, le=64, description="Images pulled at once; from 1.27.")


class Snapshots(Frozen):
    """etcd's snapshots on each control-plane node."""

    every_hours: int = Field(default=6, ge=1, le=168)
    keep: int = Field(default=14, ge=1, le=1000)
    folder: NodePath = "/var/backups/etcd"


class Audit(Frozen):
    """kube-apiserver's audit log."""

    enabled: bool = True
    max_age_days: int = Field(default=30, ge=1, le=3650)
    max_backups: int = Field(default=10, ge=1, le=1000)
    max_size_mib: int = Field(default=100, ge=1, le=10000)


class Oidc(Frozen):
    """Logins through the site's identity provider."""

    issuer: HttpUrl = Field(description="https URL of the provider, as in its tokens.")
    client: str = Field(pattern=r"^[A-Za-z0-9._:/-]{1,200}$")
    username_claim: str = Field(default="email", pattern=r"^[A-Za-z0-9_.:/-]{1,100}$")
    groups_claim: str | None = Field(default="groups", pattern=r"^[A-Za-z0-9_.:/-]{1,100}$")
    prefix: str = Field(
        default="oidc:", pattern=r"^[A-Za-z0-9_.:/-]{0,60}$", description="Before user and group names."
    )


class Taint(Frozen):
    """What keeps pods off a node that do not tolerate it."""

    key: LabelKey
    value: LabelValue = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"

    @property
    def text(self) -> str:
        """As kubectl writes it."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"
