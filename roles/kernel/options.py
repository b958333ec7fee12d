"""Options of the kernel role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from rackwright.errors import RackwrightError
from rackwright.lock.for_roles import Trouble, has_stack, lock_problems
from rackwright.lock.kernel_packages import KernelPackages, known_version, locked_kernel, named_kernel
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import DeclaresKernel, HoldsPackages
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.strings import Identifier, KernelRelease, PackageName
from rackwright.model.text import mistake
from rackwright.roles.kernel import pages

ModuleName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
ArgumentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")]
Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.,:=/@%+~^-]{1,255}$")]
"""What neither GRUB's settings nor a shell reads as anything else."""
_OWNED = {
    "iommu": "iommu",
    "intel_iommu": "iommu",
    "amd_iommu": "iommu",
    "iommu.passthrough": "iommu",
    "hugepages": "hugepages",
    "hugepagesz": "hugepages",
    "mitigations": "mitigations",
}
_OF_BOOT_LOADER = ("root", "ro", "rw", "initrd", "BOOT_IMAGE")


class Modules(Frozen):
    """Kernel modules. Those of a role's own hardware, e.g. NVIDIA's, are that role's."""

    load: tuple[ModuleName, ...] = Field(default=(), description="Loaded now and at each boot.")
    options: dict[ModuleName, dict[Identifier, Word]] = Field(
        default_factory=dict,
        description="Parameters by module, as modinfo lists them; a loaded module gets them at the next boot.",
    )
    blacklist: tuple[ModuleName, ...] = Field(
        default=(),
        description="Neither an alias nor modprobe loads them; a loaded one is gone at the next boot.",
    )

    @field_validator("options", mode="before")
    @classmethod
    def _are_texts(cls, options: object) -> object:
        if not isinstance(options, dict):
            return options
        return {
            module: {name: _text(value) for name, value in parameters.items()}
            if isinstance(parameters, dict)
            else parameters
            for module, parameters in options.items()
        }

    @field_validator("blacklist")
    @classmethod
    def _are_not_loaded(cls, blacklist: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        loaded = {name.replace("-", "_") for name in info.data.get("load", ())}
        for name in blacklist:
            if name.replace("-", "_") in loaded:
                raise mistake(f"{name} is listed under `load` too.", "keep one of them")
        return blacklist


def _text(value: object) -> object:
    """YAML's numbers and booleans as modprobe takes them."""
    if isinstance(value, bool):
        return "Y" if value else "N"
    return str(value) if isinstance(value, int) else value


class KernelOptions(RoleOptions, DeclaresKernel, HoldsPackages):
    """The running kernel, its arguments, its modules and PCIe bridges."""

    release: KernelRelease | None = Field(
        default=None,
        description="The exact kernel, as uname -r prints it; installed, held, and the one that boots. None: the "
        "lock's, on nodes that have one; on others the kernel stays as it is. Where there is a lock, "
        "`gpu_stack.kernel` names the kernel.",
    )
    version: str | None = Field(
        default=None,
        pattern=r"^[0-9][A-Za-z0-9.+:~_-]{0,99}$",
        description="Version of the release's packages, e.g. `6.8.0-139.139`. None: that in the release's name (EL), "
        "or in rackwright's table of kernels.",
    )
    packages: tuple[PackageName, ...] = Field(
        default=(),
        description="Further packages of the release, held at its version, e.g. `linux-modules-extra-6.8.0-139-generic`.",
    )
    page_size: Literal["4k", "64k"] | None = Field(
        default=None,
        description="Of an Arm kernel. 64k: its flavour with pages of 64 KiB (EL: +64k; Ubuntu: a release such as "
        "`6.8.0-1031-nvidia-64k`), as NVIDIA has it for Grace. None: as the kernel has it.",
    )
    iommu: Literal["passthrough", "leave"] | None = Field(
        default=None,
        description="passthrough: `iommu=pt`, so that devices address memory directly. leave: as it is. None: "
        "passthrough on bare metal with NVIDIA's GPUs.",
    )
    acs: Literal["off", "leave"] | None = Field(
        default=None,
        description="off: a unit clears the ACS control bits of every PCI bridge at each boot (they come back with a "
        "reset), as NCCL's troubleshooting guide asks for on bare metal. leave: for hosts of guests, which ACS keeps "
        "apart, and where the vendor sets ACS bridge by bridge. None: off on bare metal with NVIDIA's GPUs, unless "
        "the SKU has `keeps_acs`. `rackwright health` expects the same.",
    )
    hugepages: dict[str, Annotated[int, Field(ge=0, le=1_000_000)]] = Field(
        default_factory=dict,
        description="Explicit huge pages by size, e.g. `{2M: 1024, 1G: 16}`, over all NUMA nodes. 2M is reserved at "
        "once and at each boot, larger ones by the command line. Transparent ones are the tuning role's.",
    )
    mitigations: Literal["default", "auto,nosmt", "off"] = Field(
        default="default",
        description="Of CPU vulnerabilities. default: the kernel's own choice. auto,nosmt: SMT is turned off where a "
        "mitigation needs it. off: none, which leaves every process readable by every other.",
    )
    arguments: dict[ArgumentName, Literal[True] | int | Word] = Field(
        default_factory=dict,
        description="Further arguments of the command line, e.g. `{nvme_core.multipath: N, nosoftlockup: true}`.",
    )
    remove: tuple[ArgumentName, ...] = Field(
        default=(), description="Arguments removed from the command line at any value, e.g. `quiet`."
    )
    modules: Modules = Modules()

    @field_validator("arguments", "remove")
    @classmethod
    def _are_free(cls, given: Iterable[str]) -> Iterable[str]:
        for name in given:
            if name in _OWNED:
                raise mistake(f"`{name}` has a separate option.", f"declare it as `{_OWNED[name]}`")
            if name in _OF_BOOT_LOADER:
                raise mistake(
                    f"`{name}` is set by the boot loader: the wrong value keeps the node from booting."
                )
        return given

    @field_validator("remove")
    @classmethod
    def _are_not_declared(cls, remove: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        for name in remove:
            if name in info.data.get("arguments", {}):
                raise mistake(f"`{name}` is declared under `arguments`.", "keep one of them")
        return remove

    def turns_acs_off(self, node: Node) -> bool:
        """By `acs`, or where it is None by the SKU."""
        if self.acs is None:
            return has_stack(node) and not node.sku.keeps_acs
        return self.acs == "off"

    def held_packages(self, node: Node) -> tuple[str, ...]:
        """Those of a declared release; the lock names its own."""
        found = self._named(node)
        return () if found is None else tuple(name.partition("=")[0] for name in found.packages)

    def kernel(self, cluster: Cluster, node: Node) -> KernelPackages | None:
        """The kernel a node is to have; None: as installed."""
        return locked_kernel(cluster, node) or self._named(node)

    def kernel_release(self, cluster: Cluster, node: Node) -> str | None:
        """As `kernel` has it."""
        found = self.kernel(cluster, node)
        return None if found is None else found.release

    def _named(self, node: Node) -> KernelPackages | None:
        release = self._release(node)
        version = None if release is None else self.version or known_version(node, release)
        if release is None or version is None:
            return None
        found = named_kernel(node, release, version)
        more = tuple(f"{name}={version}" for name in self.packages)
        return KernelPackages(release, (*found.packages, *more))

    def _release(self, node: Node) -> str | None:
        """The declared release in the family's own spelling, with the flavour of the page size."""
        if self.release is None:
            return None
        release = node.family.kernel_release(self.release, node.sku.cpu_architecture)
        return node.family.with_large_pages(release) if release and self.page_size == "64k" else release

    def problems(self, cluster: Cluster) -> Iterator[Trouble]:
        """A kernel that is not one of the node's, and what the hardware cannot have."""
        nodes = cluster.running("kernel", self)
        for node in {(node.sku.name, node.os): node for node in reversed(nodes)}.values():
            yield from self._kernel_problems(node)
            yield from self._page_problems(node)

    def _kernel_problems(self, node: Node) -> Iterator[Trouble]:
        cpu, release = node.sku.cpu_architecture, self._release(node)
        if self.page_size == "64k" and cpu != "aarch64":
            yield "page_size", f"{node.name} is an {cpu}: only Arm kernels have pages of 64 KiB.", None
        elif self.release is not None and release is None:
            flavour = " with pages of 64 KiB" if self.page_size == "64k" else ""
            yield (
                "release",
                f"{self.release} is not a kernel release of {node.os}{flavour}, which {node.name} runs.",
                "as uname -r prints it, e.g. `6.8.0-1031-nvidia-64k`" if flavour else "as uname -r prints it",
            )
        elif release is not None and self.version is None and known_version(node, release) is None:
            yield (
                "version",
                f"The version of the packages of {release} on {node.os} is not known.",
                "name it, as `apt-cache policy` prints it, e.g. `version: 6.8.0-139.139`",
            )
        if self.release is None and (self.version is not None or self.packages):
            yield "release", "`version` and `packages` are those of a release, and none is declared.", None

    def _page_problems(self, node: Node) -> Iterator[Trouble]:
        known = pages.sizes(node.sku.cpu_architecture, self.page_size)
        unknown = [size for size in self.hugepages if size not in known]
        if unknown:
            kernel = f"{node.sku.cpu_architecture} kernel" + (
                " of 64k pages" if self.page_size == "64k" else ""
            )
            yield "hugepages", f"{unknown[0]} is not a huge page of an {kernel}: {', '.join(known)}.", None
            return
        if len(large := pages.only_at_boot(self.hugepages)) > 1:
            yield "hugepages", f"Only one of {', '.join(large)} can be on the command line.", None
        reserved = pages.reserved_mib(self.hugepages)
        if reserved > node.sku.memory_mib * 0.9:
            yield (
                "hugepages",
                f"They take {reserved} MiB of the {node.sku.memory_mib} MiB of {node.name}: more than 90 %.",
                "memory in huge pages is lost to everything that does not ask for them",
            )

    def lock_problems(self, cluster: Cluster) -> Iterator[Trouble]:
        """A lock that cannot be used, or has another kernel than the options."""
        if cluster.gpu_stack is None:
            return
        found = list(lock_problems(cluster, "kernel"))
        if found:
            yield from found
            return
        for node in cluster.running("kernel", self):
            try:
                locked = locked_kernel(cluster, node)
            except RackwrightError:
                return  # reported by lock_problems
            if locked is None:
                continue
            if self.release is not None and self._release(node) != locked.release:
                yield (
                    "release",
                    f"The lock has the kernel {locked.release} for {node.name}, not {self.release}.",
                    f"set `gpu_stack.kernel`, then run: rackwright lock {cluster.path.name}",
                )
                return
            if self.page_size == "64k" and node.family.with_large_pages(locked.release) != locked.release:
                yield (
                    "page_size",
                    f"The lock's kernel for {node.name}, {locked.release}, does not have pages of 64 KiB.",
                    f"name one in `gpu_stack.kernel`, then run: rackwright lock {cluster.path.name}",
                )
                return

    def warnings(self, cluster: Cluster) -> Iterator[Trouble]:
        """CPUs without their mitigations, and memory that is mostly huge pages."""
        if self.mitigations == "off":
            yield (
                "mitigations",
                "Without mitigations a user's process can read the memory of the kernel and of other users.",
                "keep `default`, unless everyone who can start a process there may read all of it",
            )
        reserved = pages.reserved_mib(self.hugepages)
        for node in cluster.running("kernel", self):
            if reserved > node.sku.memory_mib / 2:
                share = f"{reserved} of {node.sku.memory_mib} MiB of {node.name}"
                yield "hugepages", f"Huge pages take more than half of the memory: {share}.", None
                return
