"""What the gpudirect role claims of a node, from its live state."""

from __future__ import annotations

import re
from functools import partial

from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, fail
from rackwright.claims.kernel import loaded_modules
from rackwright.claims.units import starts_at_boot
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.roles.gpudirect import bridges
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
        fail(f"the kernel is {kernel.strip()}; dma-buf for peers came with 5.12")
    return f"open kernel modules on {kernel.strip()}"


def _dmabuf(context: CheckContext[GpudirectOptions]) -> str:
    return can_dmabuf(context.output("cat /proc/driver/nvidia/version"), context.output("uname -r"))


def _peermem(context: CheckContext[GpudirectOptions]) -> str:
    loaded = "nvidia_peermem" in loaded_modules(context)
    if context.options.peermem and not loaded:
        fail("nvidia_peermem is not loaded")
    if loaded and not context.options.peermem:
        raise Warned("nvidia_peermem is loaded though not declared: NCCL may use either")
    return "nvidia_peermem is loaded" if loaded else "dma-buf alone"


def _iommu(context: CheckContext[GpudirectOptions]) -> str:
    there = context.output("cat /proc/cmdline").split()
    if not there:
        raise Undetermined("/proc/cmdline is empty")
    missing = [one for one in bridges.kernel_arguments(context.node) if one not in there]
    if missing:
        fail(f"the kernel runs without {' '.join(missing)}: reboot the node, or see what its boot loader has")
    kinds = set(context.output("cat /sys/kernel/iommu_groups/*/type").split())
    if not kinds:
        raise Undetermined("the kernel lists no IOMMU group")
    if kinds != {"identity"}:
        fail(f"IOMMU groups are {', '.join(sorted(kinds))}, not identity alone")
    return "every IOMMU group is identity"


def _acs(context: CheckContext[GpudirectOptions]) -> str:
    context.output("command -v setpci")
    found = bridges.parse(context.output("sh -c %s", bridges.READ))
    if found.redirecting:
        some = ", ".join(f"{bridge} ({bits})" for bridge, bits in list(found.redirecting.items())[:4])
        fail(f"ACS is on at {len(found.redirecting)} bridges, e.g. {some}")
    return f"{found.quiet} bridges redirect nothing"


def _by_dmabuf(node: Node, options: GpudirectOptions) -> bool:
    return not options.peermem


def _passthrough(node: Node, options: GpudirectOptions) -> bool:
    return options.iommu == "passthrough"


def _acs_off(node: Node, options: GpudirectOptions) -> bool:
    return options.acs == "off"


_MODULES = frozenset({Capability.KERNEL_MODULES})
CHECKS = (
    Check("NICs can reach GPU memory by dma-buf", _dmabuf, needs=_MODULES, applies=_by_dmabuf),
    Check(
        "nvidia-peermem is loaded only as declared",
        _peermem,
        needs=_MODULES,
    ),
    Check("the IOMMU passes through", _iommu, needs=frozenset({Capability.KERNEL}), applies=_passthrough),
    Check(
        "ACS is turned off at every boot",
        partial(
            starts_at_boot, unit="rackwright-acs-off.service", why="bridges redirect peers after a reboot"
        ),
        needs=frozenset({Capability.HARDWARE}),
        applies=_acs_off,
    ),
    Check("no PCI bridge redirects peers", _acs, needs=frozenset({Capability.HARDWARE}), applies=_acs_off),
)
