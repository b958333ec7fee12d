"""Options of the lustre_client role."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field, StringConstraints

from rackwright.lock.versions import upstream
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import HoldsPackages
from rackwright.model.options import Frozen
from rackwright.model.package_archive import PackageArchive, PackageVersion
from rackwright.model.storage import Filesystem, FilesystemKind, Mount
from rackwright.model.strings import InterfaceName
from rackwright.mount_roles import MountingOptions, Problem, declared_kernel, options_of, rails, shown_of
from rackwright.osfamily.names import names

LNET_UNIT = "lnet.service"
NetName = Annotated[str, StringConstraints(pattern=r"^(tcp|o2ib)[0-9]{0,4}$")]
_NID = re.compile(r"(?P<address>[0-9.]+)(@(?P<net>[a-z0-9]+))?")
_SHOWN = frozenset({"flock", "localflock", "lazystatfs", "nolazystatfs", "user_xattr", "nouser_xattr"})
"""Of lustre/llite/llite_lib.c (ll_show_options), 2.15.8, read 2026-11-26."""


def plain_net(net: str) -> str:
    """`tcp0` as LNet prints it: `tcp` (libcfs_nid2str)."""
    return re.sub(r"(?<=[a-z])0+$", "", net)


class LnetNetwork(Frozen):
    """One LNet network of a node."""

    network: str = Field(
        description="Network of the cluster file; each rail of it that a node is on becomes an interface."
    )
    interfaces: tuple[InterfaceName, ...] = Field(
        default=(), description="Interfaces by rail, where no role names them: `[ib0, ib1]`."
    )


class Interface(NamedTuple):
    """One interface of an LNet network on a node."""

    net: str
    """Name of the LNet network, e.g. `o2ib`."""
    nid: str
    """What LNet calls it, e.g. `10.11.0.11@o2ib`."""
    name: str | None
    """None: no role names it, and it is not declared."""


class LustreClientOptions(MountingOptions, HoldsPackages):
    """Lustre's client, on nodes that mount a filesystem of the kind lustre."""

    role: ClassVar[str] = "lustre_client"
    mounts_kinds: ClassVar[frozenset[FilesystemKind]] = frozenset({FilesystemKind.LUSTRE})

    version: PackageVersion = Field(
        description="Exact version of the client's packages, e.g. `2.15.8-1.el9`; held. Lustre supports each release on "
        "named kernels: lustre/ChangeLog of the release lists them.",
    )
    modules: Literal["dkms", "prebuilt"] = Field(
        default="dkms",
        description="`dkms`: built on the node for its kernel. `prebuilt`: packages that were compiled for exactly the "
        "kernel of the role `kernel`.",
    )
    archive: PackageArchive | None = Field(
        default=None,
        description="Where the packages come from. Whamcloud's own archive is not signed, so a site keeps a signed copy. "
        "None: an archive that the nodes have already.",
    )
    networks: dict[NetName, LnetNetwork] = Field(
        default_factory=dict,
        description="LNet networks, e.g. `{o2ib: {network: fabric}}`. A network of a filesystem's servers that is not "
        "listed here uses the interfaces of the filesystem's network.",
    )
    build_minutes: int = Field(
        default=40, ge=1, le=240, description="Time limit for building the modules, in minutes."
    )

    @property
    def module_version(self) -> str:
        """As the modules name themselves."""
        return upstream(self.version).replace("_", "-")

    def packages(self, cluster: Cluster, node: Node) -> tuple[str, ...]:
        """`name=version` of each."""
        kernel = declared_kernel(cluster, node) or ""
        found = names(node.family, f"lustre-{self.modules}").packages
        return tuple(one.format(version=self.version, kernel=kernel) for one in found)

    def held_packages(self, node: Node) -> tuple[str, ...]:
        """The client's; the name of a prebuilt package may have the kernel in it, and is left out here."""
        found = names(node.family, f"lustre-{self.modules}").packages
        return tuple(one.partition("=")[0] for one in found if "{kernel}" not in one)

    def nids(self, filesystem: Filesystem) -> tuple[str, ...]:
        """NIDs of the MGS, one for each server; without a declared LNet network it is `tcp`, or `o2ib` with `rdma`."""
        found = []
        for server in filesystem.servers:
            address, _, net = server.address.partition("@")
            found.append(f"{address}@{plain_net(net) or ('o2ib' if filesystem.rdma else 'tcp')}")
        return tuple(found)

    def mount_of(self, node: Node, filesystem: Filesystem) -> Mount:
        """From every MGS, in the order declared, which is that of failover."""
        options = options_of(filesystem, ("noatime", "flock"))
        return Mount(
            filesystem,
            what=f"{':'.join(self.nids(filesystem))}:/{filesystem.fsname}",
            type="lustre",
            options=options,
            shown=shown_of(options, _SHOWN),
            requires=(LNET_UNIT,),
            timeout_seconds=180,
        )

    def nets(self, node: Node) -> dict[str, LnetNetwork]:
        """LNet networks of a node by name: the declared, and those of its filesystems' servers."""
        found = {plain_net(net): given for net, given in self.networks.items()}
        for one in self.mounted(node):
            for nid in self.nids(one):
                found.setdefault(nid.partition("@")[2], LnetNetwork(network=one.network))
        return found

    def interfaces(self, cluster: Cluster, node: Node) -> tuple[Interface, ...]:
        """Interfaces of LNet on a node, network by network and rail by rail."""
        found = []
        for net, given in self.nets(node).items():
            for place, rail in enumerate(rails(cluster, node, given.network)):
                named = given.interfaces[place] if place < len(given.interfaces) else rail.interface
                found.append(Interface(net, f"{rail.address}@{net}", named))
        return tuple(found)

    def problems(self, cluster: Cluster) -> Iterator[Problem]:
        """As every role that mounts; networks, interfaces, servers and kernels that LNet cannot use."""
        yield from super().problems(cluster)
        for net, given in self.networks.items():
            if given.network not in cluster.networks:
                hint = f"networks: {', '.join(cluster.networks)}"
                yield f"networks.{net}.network", f"There is no network {given.network}.", hint
                return
        for node in cluster.running(self.role, self):
            found = tuple(self._of_node(cluster, node))
            if found:
                yield from found
                return

    def _of_two(self, node: Node) -> Iterator[Problem]:
        """Filesystems that would put one LNet network on two networks of the cluster."""
        nets = self.nets(node)
        declared = {plain_net(net) for net in self.networks}
        for one in self.mounted(node):
            for net in {nid.partition("@")[2] for nid in self.nids(one)} - declared:
                if nets[net].network != one.network:
                    yield (
                        f"networks.{net}",
                        f"LNet's network {net} is on {one.network} for {one.name}, but on {nets[net].network} for another one.",
                        f"declare it, e.g. `networks: {{{net}: {{network: {one.network}}}}}`",
                    )

    def _of_node(self, cluster: Cluster, node: Node) -> Iterator[Problem]:
        for one in self.mounted(node):
            for server in one.servers:
                if not _NID.fullmatch(server.address):
                    yield (
                        "",
                        f"{server.name} of {one.name} is a DNS name, but the kernel shows the address instead.",
                        f"write its address under `storage.{one.name}.servers`",
                    )
        yield from self._of_two(node)
        for net, given in self.nets(node).items():
            network = cluster.networks[given.network]
            if net.startswith("o2ib") and not network.kind.rdma:
                yield (
                    f"networks.{net}",
                    f"LNet's network {net} needs RDMA, but {network.name} is {network.kind.value}.",
                    f"e.g. `networks: {{{net}: {{network: fabric}}}}`",
                )
            elif not any(one.net == net for one in self.interfaces(cluster, node)):
                yield (
                    f"networks.{net}",
                    f"{node.name} has no address on {network.name}.",
                    "name another network",
                )
        for interface in self.interfaces(cluster, node):
            if interface.name is None:
                yield (
                    f"networks.{interface.net}",
                    f"The interface that has {interface.nid.partition('@')[0]} on {node.name} is not declared.",
                    "declare `roles.network.networks`, or `interfaces` here",
                )
        if self.modules == "prebuilt" and declared_kernel(cluster, node) is None:
            yield (
                "modules",
                f"Prebuilt modules fit one kernel, but {node.name} declares none.",
                "name it in `roles.kernel.release`, or write `modules: dkms`",
            )
