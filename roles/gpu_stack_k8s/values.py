"""Values of NVIDIA's charts: everything that would install a second driver, toolkit or exporter is off.

Keys: deployments/gpu-operator/values.yaml of NVIDIA/gpu-operator, deployment/network-operator/values.yaml of
Mellanox/network-operator, deployments/helm/dra-driver-nvidia-gpu/values.yaml of NVIDIA/k8s-dra-driver-gpu; read 2026-11-28.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rackwright.model.sku import NvSwitch

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster
    from rackwright.roles.gpu_stack_k8s.options import GpuStackK8sOptions

HOST_OWNS: Mapping[str, tuple[str, ...]] = {
    "gpu_operator": (
        "driver.enabled",
        "toolkit.enabled",
        "dcgm.enabled",
        "dcgmExporter.enabled",
        "migManager.enabled",
        "gds.enabled",
        "gdrcopy.enabled",
        "nodeStatusExporter.enabled",
        "vgpuManager.enabled",
        "driver.nvidiaDriverCRD.enabled",
    ),
    "network_operator": ("sriovNetworkOperator.enabled", "maintenanceOperator.enabled"),
}
"""By chart: what has to be false, because a role of rackwright does it on the host."""


def values_of(options: GpuStackK8sOptions, cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Values by chart, of those that the options need."""
    found: dict[str, dict[str, Any]] = {}
    if options.mode == "gpu-operator":
        found["gpu_operator"] = _gpu_operator(options, cluster)
    if options.mode == "dra":
        found["dra_driver_nvidia_gpu"] = _dra_driver(options, cluster)
    if options.network_operator is not None:
        found["network_operator"] = {
            "nfd": {"enabled": options.mode != "gpu-operator"},  # one of them labels the nodes
            "sriovNetworkOperator": {"enabled": False},
            "maintenanceOperator": {"enabled": False},
        }
    return found


def _gpu_operator(options: GpuStackK8sOptions, cluster: Cluster) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for path in HOST_OWNS["gpu_operator"]:
        _set(values, path, value=False)
    return values | {
        "cdi": {"enabled": True},
        "mig": {"strategy": options.strategy(cluster)},
        "hostPaths": {"driverInstallDir": "/"},
        "devicePlugin": {"enabled": True},
        "gfd": {"enabled": True},
    }


def _dra_driver(options: GpuStackK8sOptions, cluster: Cluster) -> dict[str, Any]:
    """`gpuResourcesEnabledOverride` states that no device plugin runs beside it, without which the chart refuses."""
    multi_node = any(
        node.sku.gpus is not None and node.sku.gpus.nvswitch is NvSwitch.RACK
        for node in options.gpu_nodes(cluster)
    )
    return {
        "nvidiaDriverRoot": "/",
        "gpuResourcesEnabledOverride": True,
        "resources": {"gpus": {"enabled": True}, "computeDomains": {"enabled": multi_node}},
    }


def taken_over(chart: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Settings in a chart's final values by which it would do what the host's roles do."""
    for path in HOST_OWNS.get(chart, ()):
        found: Any = values
        for key in path.split("."):
            found = found.get(key) if isinstance(found, Mapping) else None
        if found is not False:
            yield path


def _set(values: dict[str, Any], path: str, *, value: bool) -> None:
    *above, last = path.split(".")
    for key in above:
        values = values.setdefault(key, {})
    values[last] = value
