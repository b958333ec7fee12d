"""Options of the nvidia_driver role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from rackwright.lock.for_roles import Trouble, known_bad
from rackwright.lock.lock_file import read_lock
from rackwright.lock.stack_options import StackOptions
from rackwright.model.cluster import Cluster
from rackwright.model.interfaces import DeclaresKernel, SetsUpGpuRepository
from rackwright.model.options import Frozen
from rackwright.model.strings import HttpUrl, NodePath, PackageName
from rackwright.roles.nvidia_driver.keys import fingerprint_of
from rackwright.roles.nvidia_driver.sources import origin

DwordKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]{1,80}$")]
"""The file of modprobe joins them: `NVreg_RegistryDwords="key=value;"`."""


class ModuleOptions(Frozen):
    """Parameters of the kernel modules, as modinfo and the driver's README call them without NVreg_.

    A parameter that is left out is left to the driver. Sources: the driver's README, and
    kernel-open/nvidia/nv-reg.h of NVIDIA/open-gpu-kernel-modules, read 2026-11-21.
    """

    profiling_for_all: bool = Field(
        default=True,
        description="NVreg_RestrictProfilingToAdminUsers=0: performance counters for every user, as Nsight "
        "needs; on shared GPUs false keeps users from observing each other.",
    )
    stream_memory_operations: bool = Field(
        default=False,
        description="NVreg_EnableStreamMemOPs=1, with peer mapping: NVSHMEM and DeepEP's IBGDA.",
    )
    coherent_memory: Literal["numa", "driver"] | None = Field(
        default=None,
        description="NVreg_CoherentGPUMemoryMode on Grace: numa gives GPU memory to the kernel, driver keeps "
        "it. None: the driver's choice.",
    )
    pci_topology_check_override: bool = Field(
        default=False, description="NVreg_GrdmaPciTopoCheckOverride=1: GPUDirect RDMA on bare-metal Grace."
    )
    uvm_disable_hmm: bool = Field(
        default=False,
        description="nvidia_uvm uvm_disable_hmm=1: for kernels on which CUDA fails with "
        "request_free_mem_region err -34.",
    )
    registry_dwords: dict[DwordKey, int] = Field(
        default_factory=dict, description="NVreg_RegistryDwords: keys without a separate option."
    )


class Signing(Frozen):
    """The site's module-signing key (MOK), on the nodes already: it is never sent there."""

    key: NodePath = Field(description="Path on the node of the private key.")
    certificate: NodePath = Field(description="Path on the node of the certificate, DER.")


class NvidiaDriverOptions(StackOptions, SetsUpGpuRepository):
    """NVIDIA's locked driver on nodes with declared NVIDIA GPUs."""

    role: ClassVar[str] = "nvidia_driver"
    parts: ClassVar[tuple[str, ...]] = ("modules", "pin", "driver")

    repository: HttpUrl | None = Field(
        default=None,
        description="A mirror of NVIDIA's repository for the nodes' OS, flat as NVIDIA's own, whose place is "
        "the default. With `gpu_stack.source: distribution` it is not asked.",
    )
    repository_key: Path | None = Field(
        default=None,
        description="The repository's public key, armoured, beside the cluster file: e.g. NVIDIA's "
        "3bf863cc.pub. Its fingerprint is checked before the first connection.",
    )
    repository_fingerprint: str | None = Field(
        default=None,
        pattern=r"^[0-9A-F]{40}$",
        description="Of a mirror's own key. None: NVIDIA's fingerprint for the nodes' OS.",
    )
    modules: ModuleOptions = ModuleOptions()
    signing: Signing | None = Field(
        default=None, description="What DKMS signs modules with. None: DKMS's own key of each node."
    )
    headers: tuple[PackageName, ...] | None = Field(
        default=None,
        description="Packages of kernel headers where the lock has no kernel. None: those of the release's "
        "usual kernel.",
    )
    known_bad: Literal["refuse", "try"] = Field(
        default="refuse",
        description="A driver package and kernel headers that are known not to build together. try: build "
        "all the same, e.g. where the site patches the sources.",
    )

    def problems(self, cluster: Cluster) -> Iterator[Trouble]:
        """Options that contradict the stack."""
        nodes, stack = self.nodes(cluster), cluster.gpu_stack
        if not nodes:
            yield "", "No node of the role nvidia_driver has NVIDIA's GPUs.", "remove the section"
        if stack is None:
            return  # lock_problems reports it
        if self.signing is not None and not stack.secure_boot:
            yield (
                "signing",
                "Without Secure Boot, modules need no signature.",
                "set gpu_stack.secure_boot",
            )

    def key_text(self, cluster: Cluster) -> str:
        """The repository's key. Raises OSError, or ValueError if the file is not ASCII text."""
        return (cluster.path.parent / (self.repository_key or "")).read_text(encoding="ascii")

    def _repository_problems(self, cluster: Cluster) -> Iterator[Trouble]:
        stack = cluster.gpu_stack
        if stack is not None and stack.source == "mirror" and self.repository is None:
            yield (
                "repository",
                "The driver comes from a mirror, but its URL is not declared.",
                "e.g. `repository: http://mirror.example.com/cuda/ubuntu2404/x86_64/`",
            )
        kinds = sorted({node.os for node in self.nodes(cluster)}, key=str)
        wanted = {self.repository_fingerprint or origin(os).fingerprint for os in kinds}
        if self.repository_key is None:
            url = " and ".join(dict.fromkeys(origin(os).key_url for os in kinds))
            yield (
                "repository_key",
                "The repository's packages are trusted by its key, but no key file is declared.",
                f"download {url}, put it beside the cluster file and name it here",
            )
            return
        try:
            found = fingerprint_of(self.key_text(cluster))
        except (OSError, ValueError) as error:
            reason = (error.strerror or "").lower() if isinstance(error, OSError) else error
            yield (
                "repository_key",
                f"The key {self.repository_key} cannot be read: {reason}.",
                f"download {' and '.join(dict.fromkeys(origin(os).key_url for os in kinds))} to this path",
            )
            return
        if wanted != {found}:
            expected = " and ".join(sorted(wanted))
            url = " and ".join(dict.fromkeys(origin(os).key_url for os in kinds))
            if self.repository_fingerprint is not None:
                hint = "compare `repository_fingerprint` with what the mirror's operator publishes"
            elif self.repository is not None:
                hint = f"if the mirror signs with its own key, set `repository_fingerprint: {found}` after comparing it"
            elif len(wanted) > 1:
                hint = "these nodes' systems have different keys: set `repository_key` below each group's `options`"
            else:
                hint = f"this is another key: download {url}"
            yield "repository_key", f"The key's fingerprint is {found}, not {expected}.", hint

    def lock_problems(self, cluster: Cluster) -> Iterable[Trouble]:
        """As every role of the stack; keys that are missing or wrong; and pairs that are known not to build.

        A key is needed to install and not to lock, so that `rackwright lock` comes before it.
        """
        stack = cluster.gpu_stack
        found = list(super().lock_problems(cluster))
        if stack is not None and stack.source != "distribution" and self.nodes(cluster):
            found += self._repository_problems(cluster)
        found += self._without_kernel(cluster) if not found else ()
        if found or self.known_bad == "try" or not self.nodes(cluster):
            return found
        return list(self._known_bad(cluster))

    def _without_kernel(self, cluster: Cluster) -> Iterator[Trouble]:
        lock = read_lock(cluster)
        for node in self.nodes(cluster):
            group = lock.group_of(node)
            if group is not None and group.kernel is not None and node.offers(DeclaresKernel) is None:
                yield (
                    "",
                    f"The lock has the kernel {group.kernel} for {node.name}, but no role of the node installs it.",
                    "add `kernel: {}` under `roles`",
                )
                return

    def _known_bad(self, cluster: Cluster) -> Iterator[Trouble]:
        lock = read_lock(cluster)
        kinds = {(node.sku.name, node.os): node for node in self.nodes(cluster)}
        for node in kinds.values():
            group = lock.group_of(node)
            pair = None if group is None else known_bad(group)
            if pair is not None and group is not None:
                fault = f"{pair.package} {pair.revision} does not build on {group.kernel} of {group.os}"
                hint = (
                    f"lock another pair: rackwright lock {cluster.path.name}; a patched one: `known_bad: try`"
                )
                yield "", f"{fault}: {pair.words} ({pair.source.text}).", hint
