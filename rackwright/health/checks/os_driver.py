"""The NVIDIA driver stack as software: loaded, matching, built, held."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rackwright.health.checks import scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.records import Unreadable
from rackwright.health.registry import check
from rackwright.health.verdict import Action, Finding, fail, good, warn

UVM = "nvidia_uvm"
DRIVER_PACKAGE = r"^(?:nvidia-(?:driver|kernel|open|dkms|utils|headless|fabricmanager|fabric-manager|imex)|libnvidia-compute)"
FABRIC_PACKAGE = r"^nvidia-(?:fabricmanager|fabric-manager)(?:-\d+)?$"
NEEDS_OPEN = ("blackwell",)


def loaded(document: Document) -> str:
    version = document.driver.version
    if version is None:
        raise Unreadable("the NVIDIA driver is not loaded")
    return version


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


@check(
    "os", "The NVIDIA driver is loaded with its modules", reads=("driver",), needs=("kernel-modules",), applies=scope.gpus, action=Action.REBOOT,
    remedy="Run modprobe nvidia; if it fails, dmesg has the reason. Secure Boot requires signed modules.",
    source="gcm, gpud kernel-module",
)  # fmt: skip
def driver_loaded(expected: Expected, document: Document) -> Iterator[Finding]:
    section = document.driver
    if section.version is None:
        yield fail("/proc/driver/nvidia/version is missing")
    if "nvidia" not in section.modules:
        yield fail("not loaded: nvidia")
    elif UVM not in section.modules:
        yield warn(f"not loaded: {UVM}; the first CUDA program loads it")
    yield good(f"{section.version}")


@check(
    "os", "The driver and its libraries have the same version", reads=("driver", "gpus"), needs=("kernel-modules",), applies=scope.gpus, action=Action.REBOOT,
    remedy="Reboot, or unload and load the driver: an update replaced only the libraries.",
    source="PEERS pains: driver and library skew after unattended upgrades",
)  # fmt: skip
def driver_matches(expected: Expected, document: Document) -> Iterator[Finding]:
    kernel, library = loaded(document), document.gpus.driver_version
    if kernel != library:
        yield fail(f"the kernel module is {kernel}, nvidia-smi is from {library}")
    yield good(kernel)


def locked(expected: Expected) -> bool:
    return scope.gpus(expected) and expected.driver_version is not None


@check(
    "os", "The driver is the locked version", reads=("driver",), needs=("kernel-modules",), applies=locked, action=Action.NONE,
    remedy="Apply the cluster's lock, then reboot.", source="the cluster's lock",
)  # fmt: skip
def driver_locked(expected: Expected, document: Document) -> Iterator[Finding]:
    version = loaded(document)
    if version != expected.driver_version:
        yield fail(f"driver {version}, locked {expected.driver_version}")
    yield good(version)


def open_matters(expected: Expected) -> bool:
    return scope.gpus(expected) and (
        expected.driver_open is not None or expected.the_gpus().architecture in NEEDS_OPEN
    )


@check(
    "os", "The kernel modules are the declared type, open where the GPU requires it", reads=("driver",),
    needs=("kernel-modules",), applies=open_matters, action=Action.NONE, remedy="Install the other type of kernel modules, then reboot.",
    source="NVIDIA driver installation guide: Blackwell and Grace work with the open modules only",
)  # fmt: skip
def driver_open(expected: Expected, document: Document) -> Iterator[Finding]:
    loaded(document)
    is_open = document.driver.open
    if is_open is None:
        raise Unreadable("the driver does not report whether its modules are open")
    wanted = True if expected.the_gpus().architecture in NEEDS_OPEN else expected.driver_open
    if is_open != wanted:
        works = expected.the_gpus().architecture not in NEEDS_OPEN
        yield fail(
            f"the modules are {'open' if is_open else 'proprietary'}", Action.NONE if works else Action.REBOOT
        )
    yield good("open" if is_open else "proprietary")


@check(
    "os", "The driver has no published vulnerability", reads=("driver",), needs=("kernel-modules",), applies=scope.gpus, action=Action.NONE,
    remedy="Lock a newer driver from the same branch.", source="ClusterMAX minimum versions, July to September 2026",
)  # fmt: skip
def driver_security(expected: Expected, document: Document) -> Iterator[Finding]:
    version = loaded(document)
    least = expected.minimum_drivers.get(version.split(".")[0])
    if least is None:
        raise Unreadable(f"no minimum version is known for branch {version.split('.')[0]}")
    if numbers(version) < numbers(least):
        yield fail(f"{version}; the minimum for its branch is {least}")
    yield good(version)


@check(
    "os", "nouveau is not loaded", reads=("driver",), needs=("kernel-modules",), applies=scope.gpus, action=Action.NONE,
    remedy="Blacklist nouveau, rebuild the initramfs, reboot.", source="NVIDIA driver installation guide",
)  # fmt: skip
def driver_nouveau(expected: Expected, document: Document) -> Iterator[Finding]:
    modules = document.driver.modules
    if not modules:
        raise Unreadable("no module is loaded")
    if "nouveau" in modules:
        yield fail("nouveau is loaded")
    yield good("not loaded")


@check(
    "os", "Every DKMS module is built for the running kernel", reads=("driver", "system"), applies=scope.any_gpus,
    needs=("kernel-modules",), action=Action.NONE, remedy="Run dkms autoinstall; the build log is under /var/lib/dkms.",
    source="DKMS tree; handbook: verify before the reboot",
)  # fmt: skip
def driver_dkms(expected: Expected, document: Document) -> Iterator[Finding]:
    kernel = document.system.kernel
    modules = document.driver.dkms
    for name in sorted({module.module for module in modules}):
        if not any(kernel in module.kernels for module in modules if module.module == name):
            yield fail(f"{name} is not built for {kernel}")
    yield good(f"{len(modules)} modules")


def held(expected: Expected) -> bool:
    return scope.gpus(expected) and expected.hold_packages


@check(
    "os", "The driver's packages are held", reads=("packages",), needs=("kernel-modules",), applies=held, action=Action.NONE,
    remedy="Run apt-mark hold or dnf versionlock; rackwright's lock does both.",
    source="cluster-toolkit holds them; deepops does not, and drivers move under jobs",
)  # fmt: skip
def driver_held(expected: Expected, document: Document) -> Iterator[Finding]:
    packages = [one for one in document.packages.packages if re.match(DRIVER_PACKAGE, one.name)]
    if not packages:
        raise Unreadable("the package manager knows no driver package")
    free = sorted(one.name for one in packages if not one.held)
    if free:
        yield fail(f"not held: {' '.join(free[:12])}")
    yield good(f"{len(packages)} packages")


@check(
    "os", "fabricmanager matches the driver version", reads=("packages", "driver"), needs=("kernel-modules",), applies=scope.fabricmanager,
    action=Action.NONE, remedy="Install the fabricmanager version of the running driver from the same repository.",
    source="NVIDIA fabric manager user guide: versions must match exactly, else CUDA error 802",
)  # fmt: skip
def fabricmanager_version(expected: Expected, document: Document) -> Iterator[Finding]:
    version = loaded(document)
    there = [one for one in document.packages.packages if re.match(FABRIC_PACKAGE, one.name)]
    if not there:
        yield fail("fabricmanager is not installed")
    for one in there:
        upstream = re.sub(r"^\d+:", "", one.version).split("-")[0]
        if upstream != version:
            yield fail(f"{one.name} {one.version}, driver {version}")
    yield good(version)


def nvidia_direct(expected: Expected) -> bool:
    return scope.gpus(expected) and scope.gpu_direct(expected)


@check(
    "os", "GPUs and fabric NICs can use GPUDirect RDMA", reads=("driver",), applies=nvidia_direct,
    needs=("kernel-modules",), action=Action.NONE, remedy="Use the open kernel modules (DMA-BUF), or load nvidia_peermem.",
    source="GPUDirect RDMA; ClusterMAX wants DMA-BUF and fails peermem alone",
)  # fmt: skip
def gpu_direct_rdma(expected: Expected, document: Document) -> Iterator[Finding]:
    loaded(document)
    section = document.driver
    if "ib_core" not in section.modules:
        yield fail("the RDMA core is not loaded")
    if not section.open and "nvidia_peermem" not in section.modules:
        yield fail("proprietary modules without nvidia_peermem")
    elif not section.open:
        yield warn("through nvidia_peermem; the open modules would provide DMA-BUF")
    yield good("DMA-BUF")
