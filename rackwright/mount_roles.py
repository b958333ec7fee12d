"""What the roles that mount filesystems share: where they run, their units, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

from rackwright.model.cluster import Cluster, Node
from rackwright.model.hcas import NamesInterfaces
from rackwright.model.interfaces import DeclaresKernel, WritesUnitFiles
from rackwright.model.mount_options import excludes
from rackwright.model.options import RoleOptions
from rackwright.model.platforms import Capability, why_node_lacks
from rackwright.model.storage import Filesystem, FilesystemPurpose, MountsFilesystems
from rackwright.mounts import mounted_by, unit_files

Problem = tuple[str, str, str | None]
_SHOWN = frozenset({"noatime", "nodev", "nodiratime", "noexec", "nosuid", "relatime"})
"""Options of any filesystem that mountinfo shows as they are given (proc_pid_mountinfo(5))."""


class Rail(NamedTuple):
    """A node's address on one rail of a network, and the interface that has it."""

    rail: int
    address: str
    interface: str | None
    """None: no role names it."""


class MountingOptions(RoleOptions, MountsFilesystems, WritesUnitFiles):
    """Options of a role that mounts filesystems: it runs where a node mounts one of its kinds."""

    role: ClassVar[str]

    def runs_on(self, node: Node) -> bool:
        """On nodes that mount a filesystem of these kinds."""
        return super().runs_on(node) and bool(self.mounted(node))

    def mounted(self, node: Node) -> tuple[Filesystem, ...]:
        """What the role mounts on a node, in file order."""
        return mounted_by(node, self.mounts_kinds)

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """The units of its mounts."""
        return unit_files(node, self)

    def problems(self, cluster: Cluster) -> Iterator[Problem]:
        """Nodes that cannot mount."""
        for node in cluster.running(self.role, self):
            why = why_node_lacks(node, Capability.NETWORK_FILESYSTEMS)
            if why is not None and (one := next(iter(self.mounted(node)), None)) is not None:
                yield (
                    "",
                    f"{node.name} cannot mount {one.name}: {why}.",
                    f"remove it from `storage.{one.name}.nodes`",
                )
                return

    def warnings(self, cluster: Cluster) -> Iterator[Problem]:
        """Nothing to mount."""
        if not cluster.running(self.role):
            kinds = " or ".join(sorted(self.mounts_kinds))
            yield "", f"No node mounts a {kinds} filesystem.", "declare one under `storage`"


def options_of(filesystem: Filesystem, own: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Mount options: those of the purpose and of the kind, where no declared one contradicts them; then the declared."""
    purpose = ("nodev",) if filesystem.purpose is FilesystemPurpose.SOFTWARE else ("nosuid", "nodev")
    declared = filesystem.options
    kept = (one for one in (*purpose, *own) if not any(excludes(one, other) for other in declared))
    return (*kept, *declared)


def shown_of(options: tuple[str, ...], more: frozenset[str] = frozenset()) -> Mapping[str, str | None]:
    """The options of these that mountinfo has to show; `more`: flags of the kind that it shows too."""
    return {one: None for one in options if one in _SHOWN | more}


def rails(cluster: Cluster, node: Node, network: str) -> tuple[Rail, ...]:
    """The node's addresses on a network, by rail."""
    named = node.offers(NamesInterfaces)
    return tuple(
        Rail(
            entry.rail,
            str(entry.address),
            None if named is None else named.interface(cluster, network, entry.rail),
        )
        for entry in sorted(node.addresses, key=lambda entry: entry.rail)
        if entry.network == network
    )


def declared_kernel(cluster: Cluster, node: Node) -> str | None:
    """The kernel that modules are built for, as uname -r prints it; None: the one that is installed."""
    kernel = node.offers(DeclaresKernel)
    return None if kernel is None else kernel.kernel_release(cluster, node)
