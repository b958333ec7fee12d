"""Kernel, its command line, IOMMU and PCIe redirection."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rackwright.health.checks import declared, scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.records import Unreadable
from rackwright.health.registry import check
from rackwright.health.verdict import Action, Finding, fail, good

PASS_THROUGH = ("identity",)


@check(
    "os", "The running kernel is the newest one installed", reads=("system",), needs=("kernel",), action=Action.NONE,
    remedy="Drain and reboot in the next rollout.", source="ClusterMAX security: kernel not older than installed",
)  # fmt: skip
def kernel_newest(expected: Expected, document: Document) -> Iterator[Finding]:
    running, installed = document.system.kernel, document.system.kernels
    if not installed:
        raise Unreadable("no installed kernel was found below /boot and /lib/modules")
    flavour = re.sub(r"^[\d.]+(?:-\d+)?", "", running)  # -amd64 and -cloud-amd64 are different kernels
    newer = [one for one in installed if order(one) > order(running) and one.endswith(flavour)]
    if newer:
        yield fail(f"running {running}, installed {max(newer, key=order)}")
    yield good(running)


def order(release: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", release)]


def kernel_locked(expected: Expected) -> bool:
    return expected.kernel is not None


@check(
    "os", "The kernel is the locked release", reads=("system",), applies=kernel_locked, needs=("kernel",), action=Action.NONE,
    remedy="Apply the cluster's lock, then reboot.", source="the cluster's lock",
)  # fmt: skip
def kernel_version(expected: Expected, document: Document) -> Iterator[Finding]:
    running = document.system.kernel
    if running != expected.kernel:
        yield fail(f"{running}, locked {expected.kernel}")
    yield good(running)


def arguments_declared(expected: Expected) -> bool:
    return bool(expected.kernel_arguments)


@check(
    "os", "The kernel booted with the declared arguments", reads=("system",), applies=arguments_declared,
    needs=("kernel",), action=Action.NONE, remedy="Apply the kernel role, then reboot.",
    source="the site's options; other tools do not verify /proc/cmdline",
)  # fmt: skip
def kernel_arguments(expected: Expected, document: Document) -> Iterator[Finding]:
    there = document.system.command_line
    if not there:
        raise Unreadable("the kernel's command line is empty")
    missing = [argument for argument in expected.kernel_arguments if argument not in there]
    if missing:
        yield fail(f"missing: {' '.join(missing)}")
    yield good(" ".join(expected.kernel_arguments))


@check(
    "os", "The IOMMU is off or in passthrough mode", reads=("pci",), applies=scope.gpu_direct, needs=("hardware",),
    action=Action.NONE, remedy="Put iommu=pt (arm64: iommu.passthrough=1) on the kernel command line and reboot.",
    source="ClusterMAX networking: IOMMU passthrough; deepops nv-iommu-pt",
)  # fmt: skip
def iommu_passthrough(expected: Expected, document: Document) -> Iterator[Finding]:
    kinds = document.pci.iommu
    translated = {kind: count for kind, count in kinds.items() if kind not in PASS_THROUGH}
    if translated:
        yield fail(", ".join(f"{count} groups are {kind}" for kind, count in sorted(translated.items())))
    yield good("passthrough" if kinds else "no IOMMU")


def acs_matters(expected: Expected) -> bool:
    return scope.gpu_direct(expected) and expected.acs == "off"


@check(
    "os", "No bridge above a GPU or fabric NIC redirects peer traffic to the root complex (ACS)", reads=("pci", "infiniband"),
    applies=acs_matters, needs=("hardware",), action=Action.NONE,
    remedy="Clear the ACS control register of the bridges at boot (setpci ECAP_ACS+6.w=0000).",
    source="NVIDIA NCCL user guide, troubleshooting; not for boards with ATS: `acs: leave` of the role kernel",
)  # fmt: skip
def acs_off(expected: Expected, document: Document) -> Iterator[Finding]:
    section = document.pci
    nics = {device.address for device in declared.devices(expected, document)}
    peers = [device for device in section.devices if device.is_gpu or device.address in nics]
    above = {bridge for device in peers for bridge in device.upstream}
    names = sorted(above & set(section.acs_redirecting))
    unread = sorted(above & set(section.acs_unread))
    if names:
        yield fail(f"{len(names)} bridges redirect: {' '.join(names[:8])}")
    elif unread:
        raise Unreadable(
            f"the ACS register of {' '.join(unread[:8])} could not be read; run the probe as root"
        )
    yield good("off")
