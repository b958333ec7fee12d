"""Checks of the gpudirect role, from its live state."""

from __future__ import annotations

import re

from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, fail
from rackwright.claims.kernel import loaded_modules
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.roles.gpudirect.options import GpudirectOptions

_KERNEL = (5, 12)
"""The first with dma-buf for peers: NVIDIA GPU Operator, "GPUDirect RDMA", read 2026-11-20."""


def can_dmabuf(module: str, kernel: str) -> str:
    """From /proc/driver/nvidia/version and `uname -r`."""
    version = re.match(r"(\d+)\.(\d+)", kernel)
    if version is None or "NVRM version" not in module:
        raise Undetermined("the driver or the kernel does not report its version")
    if "Open Kernel Module" not in module:
        fail("the loaded driver is the proprietary one, which does not support dma-buf")
    if (int(version[1]), int(version[2])) < _KERNEL:
        fail(f"the kernel is {kernel.strip()}; dma-buf for peers needs 5.12 or newer")
    return f"open kernel modules on {kernel.strip()}"


def _dmabuf(context: CheckContext[GpudirectOptions]) -> str:
    return can_dmabuf(context.output("cat /proc/driver/nvidia/version"), context.output("uname -r"))


def _peermem(context: CheckContext[GpudirectOptions]) -> str:
    loaded = "nvidia_peermem" in loaded_modules(context)
    if context.options.peermem and not loaded:
        fail("nvidia_peermem is not loaded")
    if loaded and not context.options.peermem:
        raise Warned("nvidia_peermem is loaded but not declared: NCCL may use either path")
    return "nvidia_peermem is loaded" if loaded else "dma-buf alone"


def _by_dmabuf(node: Node, options: GpudirectOptions) -> bool:
    return not options.peermem


_MODULES = frozenset({Capability.KERNEL_MODULES})
CHECKS = (
    Check("NICs can access GPU memory through dma-buf", _dmabuf, needs=_MODULES, applies=_by_dmabuf),
    Check(
        "nvidia-peermem is loaded only as declared",
        _peermem,
        needs=_MODULES,
    ),
)
