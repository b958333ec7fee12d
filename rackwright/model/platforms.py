"""What a platform lacks, with the reason that reports show.

A check or an operation names the capabilities it needs; if the node's declared platform lacks one, the
result is OUT OF SCOPE. This depends only on the declared platform, never on what was observed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from rackwright.model.types import Platform

if TYPE_CHECKING:
    from rackwright.model.cluster import Node


class Capability(StrEnum):
    """A feature below the operating system that a platform may lack."""

    KERNEL = "kernel"
    CLOCK = "clock"
    CPU_FREQUENCY = "cpu-frequency"
    CGROUP_V2 = "cgroup-v2"
    SWAP = "swap"
    KERNEL_MODULES = "kernel-modules"
    HARDWARE = "hardware"
    GPU = "gpu"
    """GPUs, or tools that simulate them in the lab."""
    UPLINK = "uplink"
    NETWORK_PORTS = "network-ports"
    DISKS = "disks"
    NETWORK_FILESYSTEMS = "network-filesystems"


_LACKING: dict[Platform, dict[Capability, str]] = {
    Platform.BARE_METAL: {},
    Platform.VM: {
        Capability.CPU_FREQUENCY: "a virtual machine's clock rate is set by its host",
        Capability.HARDWARE: "a virtual machine's slots, sensors and links belong to its host",
    },
    Platform.CONTAINER: {
        Capability.KERNEL: "a container shares its host's kernel and can set only namespaced settings",
        Capability.CLOCK: "a container shares its host's clock and cannot set it",
        Capability.CPU_FREQUENCY: "a container has no CPU frequency governor",
        Capability.CGROUP_V2: "slurmd cannot own a cgroup v2 tree inside a container",
        Capability.SWAP: "a container shares its host's swap",
        Capability.KERNEL_MODULES: "a container cannot load kernel modules",
        Capability.HARDWARE: "a container's slots, sensors and links belong to its host",
        Capability.GPU: "a container has no GPU unless the lab simulates one",
        Capability.NETWORK_PORTS: "a lab container's interfaces are configured from outside, by the lab",
        Capability.UPLINK: "a lab container's network namespace has no default route",
        Capability.DISKS: "a container's disks belong to its host",
        Capability.NETWORK_FILESYSTEMS: "a container neither mounts nor serves network filesystems",
    },
}


def why_lacking(platform: Platform, capability: Capability) -> str | None:
    """The reason this platform lacks a capability, or None if it has it."""
    return _LACKING[platform].get(capability)


def why_node_lacks(node: Node, capability: Capability) -> str | None:
    """The reason a node lacks a capability, or None if it has it, simulated GPUs included."""
    if capability is Capability.GPU and node.simulates_gpus:
        return None
    return why_lacking(node.platform, capability)


def has(platform: Platform, capability: Capability) -> bool:
    """Whether the platform has a capability."""
    return capability not in _LACKING[platform]
