"""Options of the ray role."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import ReservesMemory, WritesUnitFiles
from rackwright.model.options import Frozen
from rackwright.model.python_environment import HasPythonEnvironment, locked
from rackwright.model.services import (
    Certificate,
    IssuesCertificates,
    Listener,
    Listens,
    NeedsCertificates,
    RunsRay,
)
from rackwright.model.strings import NodePath
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole, Workload, WorkloadManager
from rackwright.osfamily.names import names
from rackwright.roles.ray import listening, sizes
from rackwright.roles.ray.places import ENVIRONMENTS, ETC, HEAD_UNIT, UNIT_FOLDER, USER, WORKER_UNIT

ResourceName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.:/-]{0,62}$")]
Library = Literal["train", "tune", "data", "serve"]
_RESERVED = frozenset({"CPU", "GPU", "memory", "object_store_memory"})
"""Ray's own resources (ray-core/scheduling/resources.html, read 2026-11-28)."""
Port = Annotated[int, Field(ge=1024, le=65535)]


class Ports(Frozen):
    """Ray's TCP ports (ray-core/configure.html#ports-configurations, read 2026-11-28)."""

    gcs: Port = Field(default=6379, description="The head's GCS, to which nodes and programs connect.")
    client: Port = Field(default=10001, description="The head's server for Ray Client (`ray://`).")
    dashboard: Port = Field(
        default=8265, description="Dashboard and job submission, on the head's 127.0.0.1."
    )
    node_manager: Port = 6381
    object_manager: Port = 6382
    agent_grpc: Port = Field(default=6383, description="The node's agent, which collects metrics.")
    agent_http: Port = Field(default=52365, description="The node's agent, which starts submitted jobs.")
    runtime_env: Port = Field(default=6384, description="The node's agent that makes environments of jobs.")
    metrics: Port = Field(default=6385, description="Metrics without a password: for the node itself.")
    redis: Port = Field(default=6380, description="The head's Redis, on 127.0.0.1.")
    first_worker: Port = 20000
    last_worker: Port = Field(
        default=20999, description="One port for each process that runs tasks or an actor."
    )

    @model_validator(mode="after")
    def _are_different(self) -> Self:
        fixed = {name: port for name, port in self if not name.endswith("_worker")}
        if self.last_worker < self.first_worker:
            raise mistake("`last_worker` is below `first_worker`.", "e.g. 20000 and 20999")
        by_port: dict[int, str] = {}
        for name, port in fixed.items():
            if (other := by_port.setdefault(port, name)) != name:
                raise mistake(f"{other} and {name} have the same port {port}.", "choose another one")
            if self.first_worker <= port <= self.last_worker:
                raise mistake(
                    f"The port of {name}, {port}, is in the range of workers.", "choose another one"
                )
        return self


class RayOptions(RunsRay, Listens, NeedsCertificates, WritesUnitFiles, ReservesMemory, HasPythonEnvironment):
    """Ray with its head on one node and a worker on every node of the workload."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD, NodeRole.WORKER})
    workloads: ClassVar[frozenset[Workload]] = frozenset({Workload.RAY})
    secrets: ClassVar[tuple[str, ...]] = ("ray_token", "ray_redis_password")
    environments: ClassVar[str] = ENVIRONMENTS
    own_lock: ClassVar[str] = "ray/requirements.txt.j2"
    workload_manager: ClassVar[WorkloadManager] = WorkloadManager.RAY

    head: str | None = Field(default=None, description="The node that runs the head. None: the primary head.")
    uid: int = Field(
        default=380, ge=1, lt=65534, description="User and group id of `ray`, the same everywhere."
    )

    core_spec_count: int = Field(default=0, ge=0, description="Cores of each worker kept from tasks.")
    head_cpus: int = Field(
        default=0, ge=0, description="CPUs of the head for tasks; 0 keeps tasks and actors off it."
    )
    reserved_memory_mib: int = Field(
        default=2048,
        ge=256,
        description="Memory of each node for the system and Ray's own processes, at most a quarter.",
    )
    object_store_fraction: float = Field(
        default=0.3, gt=0, lt=0.9, description="Of the node's declared memory; Ray's own default is 0.3."
    )
    object_store_mib: int | None = Field(default=None, ge=80, description="Instead of the fraction.")
    resources: dict[ResourceName, float] = Field(
        default_factory=dict, description="Further resources of each worker, by name."
    )
    ports: Ports = Ports()
    state: NodePath = Field(
        default="/var/lib/ray",
        description="Sessions with their logs, and objects that memory has no room for.",
    )
    missed_health_checks: int = Field(
        default=5,
        ge=1,
        le=1000,
        description="Ray takes a node for dead after this many unanswered health checks, one every 3 s.",
    )
    head_outage_seconds: int = Field(
        default=600,
        ge=60,
        le=86400,
        description="How long workers, their tasks and actors wait for a head that is away, e.g. for its reboot. Ray's own "
        "default of 60 s ends them sooner; KubeRay gives workers 600 s.",
    )
    log_mib: int = Field(
        default=100, ge=1, le=10240, description="Size at which one of Ray's logs is rotated."
    )
    log_files: int = Field(default=5, ge=1, le=100, description="Rotated files of each log that are kept.")
    log_days: int = Field(
        default=14, ge=1, le=3650, description="Files of sessions not written for as long are removed."
    )
    prove: tuple[Library, ...] = Field(
        default=("train", "tune", "data", "serve"), description="Libraries that verify runs a small job with."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if wrong := sorted(_RESERVED & self.resources.keys()):
            raise mistake(
                f"{wrong[0]} is one of Ray's own resources.", "the SKU declares it, or another option"
            )
        if len(set(self.prove)) != len(self.prove):
            raise ValueError("A library is named twice in `prove`.")
        return self

    def runs_on(self, node: Node) -> bool:
        """On the head, and on every worker that serves Ray."""
        return self.is_head(node) or (node.holds(NodeRole.WORKER) and node.serves(self.workloads))

    def is_head(self, node: Node) -> bool:
        """Whether the node runs Ray's head."""
        return node.primary if self.head is None else node.name == self.head

    def head_node(self, cluster: Cluster) -> Node:
        """The node that runs Ray's head."""
        return next((node for node in cluster.nodes if self.is_head(node)), cluster.primary)

    def missing_for_collectives(self, cluster: Cluster, *, gpus: bool) -> str | None:
        """NCCL is reached through cupy, gloo through torch (ray/util/collective of 2.60, read 2026-11-28)."""
        try:
            there = locked(self.lock_text(cluster))
        except (OSError, UnicodeDecodeError):
            return None  # `problems` names it
        if not gpus:
            return None if "torch" in there else "torch"
        return None if any(re.fullmatch(r"cupy(-cuda\d+x)?", name) for name in there) else "cupy"

    def address(self, cluster: Cluster) -> str:
        """Where programs connect: the head's GCS."""
        return f"{cluster.management_address(self.head_node(cluster))}:{self.ports.gcs}"

    def unit(self, node: Node) -> str:
        """The systemd unit of Ray on a node."""
        return HEAD_UNIT if self.is_head(node) else WORKER_UNIT

    def certificates(self, cluster: Cluster, node: Node) -> tuple[Certificate, ...]:
        """The node's, for both ends of its connections."""
        if node.offers(IssuesCertificates) is None:
            return ()
        address = str(cluster.management_address(node))
        return (
            Certificate(
                name="ray",
                key=f"{ETC}/tls.key",
                chain=f"{ETC}/tls.crt",
                names=tuple(dict.fromkeys((node.fqdn, node.name, address))),
                group=USER,
                serves=(f"{address}:{self.ports.node_manager}",),
            ),
        )

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """See rackwright.roles.ray.listening."""
        return listening.listeners_of(self, node)

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """Ray's unit."""
        return (f"{UNIT_FOLDER}/{self.unit(node)}",)

    def reserved_mib(self, node: Node) -> int:
        """The object store and Ray's own processes."""
        return sizes.object_store_mib(node, self) + sizes.reserved_mib(node, self)

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """A head that is none, nodes without certificates, packages or room, GPUs that Ray cannot count."""
        yield from self.lock_mistakes(cluster, "ray")
        if self.head is not None and self.head not in cluster.by_name:
            yield "head", f"{self.head} is not a node of this cluster.", None
        for node in cluster.running("ray", self):
            if node.offers(IssuesCertificates) is None:
                yield (
                    "",
                    f"{node.name} has no certificate, which Ray's processes identify themselves with.",
                    ("add the role `site_ca: {}`"),
                )
                return
            if not names(node.family, "python_environments").packages:
                yield (
                    "",
                    f"{node.name} should run Ray, but rackwright has no packages for it on {node.os}.",
                    ("run Ray on Debian or Ubuntu"),
                )
                return
            if node.mig:
                yield (
                    "",
                    f"{node.name} declares MIG instances, which Ray does not schedule.",
                    ("remove `mig` from its group, or give it to another workload"),
                )
                return
            yield from sizes.problems(node, self)

    def warnings(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """No worker."""
        if not any(not self.is_head(node) for node in cluster.running("ray", self)) and not self.head_cpus:
            yield "", "No node runs Ray's tasks.", "declare workers with `workload: ray`"
