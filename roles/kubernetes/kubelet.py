"""The kubelet's configuration of each node, from its SKU. Pure functions.

Fields: kubelet.config.k8s.io/v1beta1 (kubernetes.io, read 2026-11-28; for 1.20 its source).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from rackwright.model.platforms import Capability, has
from rackwright.model.types import Platform
from rackwright.roles.kubernetes.network import dns_address
from rackwright.roles.kubernetes.releases import release_of

if TYPE_CHECKING:
    from rackwright.model.cluster import Node
    from rackwright.roles.kubernetes.options import KubernetesOptions

CONFIG = "/etc/kubernetes/kubelet.yaml"
DROP_IN = "/etc/systemd/system/kubelet.service.d/20-rackwright.conf"
HEADER = "# Written by rackwright from the cluster file; changes made here are undone.\n"
SYSCTLS = {
    "vm.overcommit_memory": "1",
    "vm.panic_on_oom": "0",
    "kernel.panic": "10",
    "kernel.panic_on_oops": "1",
    "kernel.keys.root_maxkeys": "1000000",
    "kernel.keys.root_maxbytes": "25000000",
}
"""What protectKernelDefaults asks for (pkg/kubelet/cm/container_manager_linux.go); not namespaced."""


def text(options: KubernetesOptions, node: Node) -> str:
    """The file."""
    return HEADER + yaml.safe_dump(document(options, node), sort_keys=True)


def document(options: KubernetesOptions, node: Node) -> dict[str, Any]:
    """The configuration."""
    release, given = release_of(options.version), options.kubelet
    own_kernel = has(node.platform, Capability.KERNEL)
    found: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "systemd",
        "clusterDNS": [str(dns_address(options))],
        "clusterDomain": options.dns_domain,
        "evictionHard": {
            "memory.available": f"{given.eviction_memory_mib}Mi",
            "nodefs.available": f"{given.eviction_disk_percent}%",
            "imagefs.available": f"{given.eviction_disk_percent}%",
        },
        "failSwapOn": own_kernel,
        "maxPods": given.max_pods,
        "protectKernelDefaults": own_kernel,
        "readOnlyPort": 0,
        "rotateCertificates": True,
        "serializeImagePulls": False,
        "staticPodPath": "/etc/kubernetes/manifests",
        "systemReserved": _reserved(options, node),
        "tlsMinVersion": "VersionTLS12",
        **_placement(options, node),
    }
    if release.graceful_shutdown and given.shutdown_grace_seconds and own_kernel:
        found["shutdownGracePeriod"] = f"{given.shutdown_grace_seconds}s"
        found["shutdownGracePeriodCriticalPods"] = f"{given.shutdown_grace_seconds // 3}s"
    if release.minor >= 27:
        found["maxParallelImagePulls"] = given.parallel_pulls
        found["containerRuntimeEndpoint"] = release.cri_socket
    if release.refuses_cgroup_v1 and node.platform is Platform.CONTAINER:
        found["failCgroupV1"] = False
    return found


def reserved_cpus(options: KubernetesOptions, node: Node) -> int:
    """CPUs that pods do not get."""
    given = options.kubelet.reserved_cpus
    if given is not None:
        return given
    return max(options.core_spec_count * node.sku.threads_per_core, 2 if node.sku.cpus >= 16 else 0)


def reserved_memory_mib(options: KubernetesOptions, node: Node) -> int:
    """Memory that pods do not get, in MiB; of a lab node, of what the lab gives it."""
    given = options.kubelet.reserved_memory_mib
    memory = node.lab.memory_mib if node.lab is not None else node.sku.memory_mib
    return given if given is not None else min(max(memory // 50, 512), 16384)


def _reserved(options: KubernetesOptions, node: Node) -> dict[str, str]:
    cpus = reserved_cpus(options, node)
    memory = {"memory": f"{reserved_memory_mib(options, node)}Mi"}
    return {**memory, "cpu": str(cpus)} if cpus else memory


def cpu_manager(options: KubernetesOptions, node: Node) -> str:
    """The policy."""
    gpus = node.sku.gpus is not None and node.platform is not Platform.CONTAINER
    return options.kubelet.cpu_manager or ("static" if gpus else "none")


def _placement(options: KubernetesOptions, node: Node) -> dict[str, Any]:
    """Static CPUs need some that are reserved, and alignment needs static CPUs."""
    cpus = cpu_manager(options, node)
    gpus = node.sku.gpus is not None and node.platform is not Platform.CONTAINER
    topology = options.kubelet.topology_manager or ("restricted" if gpus else "none")
    return {"cpuManagerPolicy": cpus, "topologyManagerPolicy": topology}
