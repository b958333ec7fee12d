"""What a platform cannot have, by declaration, with the reason shown in every report.

A check or an operation names what it needs; where the node's declared platform lacks it, the
result is OUT OF SCOPE. That is a statement about the platform, never about what was observed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from rackwright.model.types import Platform

if TYPE_CHECKING:
    from rackwright.model.cluster import Node


class Capability(StrEnum):
    """Something of the machine below the operating system that a platform may not own."""

    KERNEL = "kernel"
    CLOCK = "clock"
    CPU_FREQUENCY = "cpu-frequency"
    CGROUP_V2 = "cgroup-v2"
    SWAP = "swap"
    KERNEL_MODULES = "kernel-modules"
    FIREWALL = "firewall"
    HARDWARE = "hardware"
    GPU = "gpu"
    """GPUs that tell of themselves; the lab can simulate what they tell."""
    UPLINK = "uplink"


_LACKING: dict[Platform, dict[Capability, str]] = {
    Platform.BARE_METAL: {},
    Platform.VM: {
        Capability.CPU_FREQUENCY: "a virtual machine's clock rate is governed by its host",
        Capability.HARDWARE: "a virtual machine's slots, sensors and links are its host's",
    },
    Platform.CONTAINER: {
        Capability.KERNEL: "a container shares its host's kernel and cannot set what is not namespaced",
        Capability.CLOCK: "a container shares its host's clock and may not set it",
        Capability.CPU_FREQUENCY: "a container has no CPU frequency governor of its own",
        Capability.CGROUP_V2: "slurmd cannot own a cgroup v2 tree inside a container",
        Capability.SWAP: "a container shares its host's swap",
        Capability.KERNEL_MODULES: "a container cannot load kernel modules",
        Capability.FIREWALL: "a lab container's network namespace has no uplink to guard",
        Capability.HARDWARE: "a container's slots, sensors and links are its host's",
        Capability.GPU: "a container has no GPU, unless the lab simulates what its tools tell of some",
        Capability.UPLINK: "a lab container's network namespace leads nowhere: it has no default route",
    },
}


def why_lacking(platform: Platform, capability: Capability) -> str | None:
    """The reason this platform lacks a capability, or None if it has it."""
    return _LACKING[platform].get(capability)


def why_node_lacks(node: Node, capability: Capability) -> str | None:
    """The reason a node lacks a capability, or None if it has it, be it by declared simulation."""
    if capability is Capability.GPU and node.simulates_gpus:
        return None
    return why_lacking(node.platform, capability)


def has(platform: Platform, capability: Capability) -> bool:
    """Whether the platform has a capability of its own."""
    return capability not in _LACKING[platform]
