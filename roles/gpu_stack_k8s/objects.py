"""Objects of the gpu_stack_k8s role. Pure functions."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import yaml

from rackwright.kubernetes.gpu_names import GPU, PRESENT
from rackwright.kubernetes.versions import names_cdi_devices
from rackwright.lock.images import pinned
from rackwright.model.interfaces import RunsKubernetes

if TYPE_CHECKING:
    from rackwright.kubernetes.objects import Object
    from rackwright.model.cluster import Cluster
    from rackwright.roles.gpu_stack_k8s.options import GpuStackK8sOptions, NetworkOperator

RUNTIME = "nvidia"
PLUGIN = "nvidia-device-plugin-daemonset"
"""The name that NVIDIA's own manifest gives it."""
_NAMESPACE = "kube-system"
_CONFIG = "nvidia-device-plugin-config"
_SOCKETS = "/var/lib/kubelet/device-plugins"
_LAB_GPUS = "/usr/local/share/rackwright-lab-gpus"
"""Where a lab node has the report about its simulated GPUs, which the lab's plugin reads."""
_READ = frozenset({"driver-root", "lab-gpus"})
_POD = {"app.kubernetes.io/name": "nvidia-device-plugin"}


def objects(options: GpuStackK8sOptions, cluster: Cluster) -> list[Object]:
    """What is applied on the first control-plane node."""
    found: list[Object] = []
    if options.mode != "gpu-operator" and not simulated(options, cluster):
        found.append(_runtime_class())
    if options.mode == "device-plugin":
        config = plugin_config(options, cluster)
        found += [_config_map(config), _daemon_set(options, cluster, config)]
    if options.network_operator is not None:
        found.append(_nic_policy(options.network_operator))
    return found


def simulated(options: GpuStackK8sOptions, cluster: Cluster) -> bool:
    """Whether the lab simulates the GPUs, so that there is neither a driver nor a runtime for it."""
    return any(node.simulates_gpus for node in options.gpu_nodes(cluster))


def _runtime_class() -> Object:
    """For pods that name it; the API has it since 1.20 (node.k8s.io/v1)."""
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": RUNTIME},
        "handler": RUNTIME,
    }


def device_list(options: GpuStackK8sOptions, cluster: Cluster) -> str:
    """How the plugin names devices."""
    runs = cluster.primary.offers(RunsKubernetes)
    if options.device_list is not None:
        return options.device_list
    return "cdi-cri" if runs is None or names_cdi_devices(runs.version) else "cdi-annotations"


def plugin_config(options: GpuStackK8sOptions, cluster: Cluster) -> str:
    """The plugin's configuration file (api/config/v1 of NVIDIA's k8s-device-plugin)."""
    how = device_list(options, cluster)
    config: dict[str, Any] = {
        "version": "v1",
        "flags": {
            "migStrategy": options.strategy(cluster),
            "failOnInitError": True,
            "nvidiaDriverRoot": "/",
            "plugin": {
                # the CPU manager rewrites a container's devices; CDI's survive that
                "passDeviceSpecs": how == "envvar",
                "deviceListStrategy": [how],
                "deviceIDStrategy": "uuid",
            },
        },
    }
    if options.time_slices > 1:
        replicas = [{"name": GPU, "replicas": options.time_slices}]
        config["sharing"] = {"timeSlicing": {"resources": replicas}}
    text: str = yaml.safe_dump(config, sort_keys=False)
    return text


def _config_map(config: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _CONFIG, "namespace": _NAMESPACE},
        "data": {"config.yaml": config},
    }


def _daemon_set(options: GpuStackK8sOptions, cluster: Cluster, config: str) -> Object:
    """As NVIDIA's chart renders it (deployments/helm/nvidia-device-plugin of v0.20.0, read 2026-11-28)."""
    digest = hashlib.sha256(config.encode()).hexdigest()
    pod: dict[str, Any] = {
        "priorityClassName": "system-node-critical",
        "nodeSelector": {PRESENT: "true"},
        "tolerations": [
            {"key": GPU, "operator": "Exists", "effect": "NoSchedule"},
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
        ],
        "automountServiceAccountToken": False,
        "containers": [_container(options, cluster)],
        "volumes": [
            *(_host_path(name, path, kind) for name, path, _, kind in _paths(options, cluster)),
            {"name": "config", "configMap": {"name": _CONFIG}},
        ],
    }
    if not simulated(options, cluster):
        pod["runtimeClassName"] = RUNTIME
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": PLUGIN, "namespace": _NAMESPACE},
        "spec": {
            "selector": {"matchLabels": _POD},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {
                # a new configuration makes new pods
                "metadata": {"labels": _POD, "annotations": {"rackwright.dev/config-sha256": digest}},
                "spec": pod,
            },
        },
    }


def _container(options: GpuStackK8sOptions, cluster: Cluster) -> dict[str, Any]:
    env = {"CONFIG_FILE": "/config/config.yaml", "NVIDIA_VISIBLE_DEVICES": "all"}
    env["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility"
    if options.strategy(cluster) != "none":
        env["NVIDIA_MIG_MONITOR_DEVICES"] = "all"
    named: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in env.items()]
    named.append({"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})
    return {
        "name": "nvidia-device-plugin-ctr",
        "image": pinned(cluster, options.plugin_image),
        "imagePullPolicy": "IfNotPresent",
        "env": named,
        "securityContext": _rights(options, cluster),
        "volumeMounts": [
            *(
                {"name": name, "mountPath": inside, **({"readOnly": True} if name in _READ else {})}
                for name, _, inside, _ in _paths(options, cluster)
            ),
            {"name": "config", "mountPath": "/config", "readOnly": True},
        ],
    }


def _paths(options: GpuStackK8sOptions, cluster: Cluster) -> tuple[tuple[str, str, str, str], ...]:
    """(name, path on the node, path in the container, kind) of what the plugin sees of its node."""
    sockets = ("kubelet-device-plugins-dir", _SOCKETS, _SOCKETS, "Directory")
    if simulated(options, cluster):
        return (sockets, ("lab-gpus", _LAB_GPUS, _LAB_GPUS, "Directory"))
    return (
        sockets,
        ("driver-root", "/", "/driver-root", "Directory"),
        ("cdi-root", "/var/run/cdi", "/var/run/cdi", "DirectoryOrCreate"),
    )


def _rights(options: GpuStackK8sOptions, cluster: Cluster) -> dict[str, Any]:
    if device_list(options, cluster) == "envvar":
        return {"privileged": True}
    if options.strategy(cluster) != "none":  # MIG devices are monitored through capability files
        return {"capabilities": {"add": ["SYS_ADMIN"]}}
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def _host_path(name: str, path: str, kind: str) -> dict[str, Any]:
    return {"name": name, "hostPath": {"path": path, "type": kind}}


def _nic_policy(given: NetworkOperator) -> Object:
    """Shared RDMA ports for pods; no `ofedDriver`: the host has its own.

    deployment/network-operator/crds/mellanox.com_nicclusterpolicies.yaml of Mellanox/network-operator, read 2026-11-28.
    """
    selectors: dict[str, list[str]] = {"vendors": list(given.vendors)}
    if given.interfaces:
        selectors["ifNames"] = list(given.interfaces)
    shared = {
        "resourceName": given.rdma_resource,
        "rdmaHcaMax": given.pods_per_port,
        "selectors": selectors,
    }
    return {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicClusterPolicy",
        "metadata": {"name": "nic-cluster-policy"},
        "spec": {
            "rdmaSharedDevicePlugin": {
                "image": "k8s-rdma-shared-dev-plugin",
                "repository": given.registry,
                "version": given.version,
                "config": json.dumps({"configList": [shared]}, indent=2),
            }
        },
    }
