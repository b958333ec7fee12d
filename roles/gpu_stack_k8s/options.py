"""Options of the gpu_stack_k8s role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from rackwright.kubernetes.gpu_names import MigStrategy, product, resources
from rackwright.lock.for_roles import has_stack
from rackwright.model.kubernetes_offers import GivesGpus, SetsChartValues
from rackwright.model.mirrored import MirrorItem, NeedsMirrored
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.strings import ImageReference, InterfaceName
from rackwright.model.types import NodeRole, Workload
from rackwright.roles.gpu_stack_k8s.problems import problems_of
from rackwright.roles.gpu_stack_k8s.values import taken_over, values_of

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node

PciVendor = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{4}$")]
ProductName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._/()-]{0,62}$")]
DEVICE_PLUGIN = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
"""https://github.com/NVIDIA/k8s-device-plugin, deployments/static/nvidia-device-plugin.yml, read 2026-11-28."""


class NetworkOperator(Frozen):
    """NVIDIA's Network Operator for RDMA in pods; the host's RDMA stack stays as it is."""

    registry: str = Field(
        default="nvcr.io/nvidia/mellanox",
        pattern=r"^[a-z0-9][a-z0-9./:_-]{0,200}$",
        description="Where the images of its parts are.",
    )
    version: str = Field(
        pattern=r"^network-operator-v[0-9A-Za-z.-]{1,40}$",
        description="Tag of its parts' images, which is that of the release, e.g. network-operator-v26.4.0.",
    )
    rdma_resource: str = Field(
        default="rdma_shared_device_a",
        pattern=r"^[a-z][a-z0-9_]{0,60}$",
        description="Pods ask for `rdma/<this>`.",
    )
    pods_per_port: int = Field(default=63, ge=1, le=1000, description="Pods that may share a port at a time.")
    vendors: tuple[PciVendor, ...] = Field(
        default=("15b3",), min_length=1, description="PCI vendors of the shared ports, e.g. 15b3, NVIDIA's."
    )
    interfaces: tuple[InterfaceName, ...] = Field(
        default=(), description="Network interfaces with the ports; none: every port of the vendors."
    )


class GpuStackK8sOptions(RoleOptions, GivesGpus, NeedsMirrored, SetsChartValues):
    """NVIDIA's GPUs in Kubernetes, on top of the host's own driver and toolkit."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD, NodeRole.WORKER})
    workloads: ClassVar[frozenset[Workload]] = frozenset({Workload.KUBERNETES, Workload.SLURM_ON_KUBERNETES})

    mode: Literal["device-plugin", "dra", "gpu-operator"] = Field(
        default="device-plugin",
        description="device-plugin: NVIDIA's plugin as a DaemonSet of this role. dra: the DRA driver's chart, from "
        "Kubernetes 1.34. gpu-operator: the operator's chart without driver and toolkit. Charts are applied by "
        "kubernetes_addons.",
    )
    plugin_image: ImageReference = Field(
        default=DEVICE_PLUGIN,
        description="The device plugin's image. In a lab with simulated GPUs: the lab's own, rack.lab/gpu-plugin.",
    )
    mig_strategy: MigStrategy | None = Field(
        default=None,
        description="How MIG instances are offered: single as nvidia.com/gpu, mixed as nvidia.com/mig-<profile>. None: "
        "mixed where a node is declared to have MIG instances, else none.",
    )
    device_list: Literal["cdi-cri", "cdi-annotations", "envvar"] | None = Field(
        default=None,
        description="How the plugin names devices to containerd. None: cdi-cri from Kubernetes 1.29, else "
        "cdi-annotations. envvar needs the runtime nvidia as containerd's default.",
    )
    time_slices: int = Field(
        default=1, ge=1, le=64, description="Pods that take turns on one GPU, without any limit of memory."
    )
    products: dict[str, ProductName] = Field(
        default_factory=dict,
        description="gpu.product by SKU, where manifests select nodes by GFD's value, which is NVML's name: "
        "{hgx-h100: NVIDIA H100 80GB HBM3}. Others have the SKU's GPU model.",
    )
    network_operator: NetworkOperator | None = Field(
        default=None,
        description="Its NicClusterPolicy, without a driver: DOCA-OFED or the inbox driver is the host's. Needs the "
        "operator itself, an add-on of kubernetes_addons.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.time_slices > 1 and self.mode != "device-plugin":
            raise ValueError("`time_slices` is a setting of the device plugin: use `mode: device-plugin`.")
        return self

    def runs_on(self, node: Node) -> bool:
        """On heads, where objects are applied, and on nodes with NVIDIA's GPUs, which label themselves."""
        return super().runs_on(node) and (node.holds(NodeRole.HEAD) or has_stack(node))

    def gpu_nodes(self, cluster: Cluster) -> tuple[Node, ...]:
        """Nodes whose GPUs Kubernetes gives out."""
        return tuple(node for node in cluster.running("gpu_stack_k8s") if has_stack(node))

    def strategy(self, cluster: Cluster) -> MigStrategy:
        """The MIG strategy, which is one for all nodes."""
        if self.mig_strategy is not None:
            return self.mig_strategy
        return "mixed" if any(node.mig for node in self.gpu_nodes(cluster)) else "none"

    def product(self, node: Node) -> str:
        """The value of gpu.product without MIG and time slices."""
        model = node.sku.gpus.model if node.sku.gpus is not None else ""
        return product(self.products.get(node.sku.name, model))

    def gpu_resources(self, node: Node) -> Mapping[str, int]:
        """By the strategy; none where GPUs are claimed."""
        if node.sku.gpus is None or not has_stack(node) or self.mode == "dra":
            return {}
        strategy = self.mig_strategy or ("mixed" if node.mig else "none")
        return resources(node.sku.gpus, node.mig, strategy, self.time_slices)

    def chart_values(self, cluster: Cluster) -> Mapping[str, Mapping[str, Any]]:
        """Of the operators and of the DRA driver."""
        return values_of(self, cluster)

    def refused_values(self, chart: str, values: Mapping[str, Any]) -> Iterable[str]:
        """What would install a second driver, toolkit or exporter."""
        return taken_over(chart, values)

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Mistakes that only show against the resolved cluster."""
        return problems_of(self, cluster)

    def mirrored(self, cluster: Cluster, node: Node) -> Iterable[MirrorItem]:
        """The plugin's image; those of charts belong to kubernetes_addons."""
        if self.mode == "device-plugin" and has_stack(node) and not node.simulates_gpus:
            yield MirrorItem(kind="image", name=self.plugin_image, role="gpu_stack_k8s")
        if self.network_operator is not None and has_stack(node):
            given = self.network_operator
            yield MirrorItem(
                kind="image",
                name=f"{given.registry}/k8s-rdma-shared-dev-plugin:{given.version}",
                role="gpu_stack_k8s",
            )
