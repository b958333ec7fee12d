"""Options of the beegfs role."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints, field_validator

from rackwright.lock.versions import upstream
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import GoesFirst, HoldsPackages
from rackwright.model.package_archive import PackageArchive, PackageVersion
from rackwright.model.platforms import Capability, why_node_lacks
from rackwright.model.services import Certificate, IssuesCertificates, Listener, Listens, NeedsCertificates
from rackwright.model.storage import Filesystem, FilesystemKind, MakesFilesystems, Mount, ServesFilesystems
from rackwright.model.strings import NodePath
from rackwright.model.text import mistake
from rackwright.model.types import INNER_PURPOSES
from rackwright.mount_roles import MountingOptions, Problem, options_of, rails, shown_of
from rackwright.osfamily.names import names
from rackwright.roles.beegfs.server_options import Servers

FOLDER = "/etc/beegfs"
AUTH = f"{FOLDER}/conn.auth"
AUTH_SECRET = "beegfs_conn_auth"
STORAGE_PORT, CLIENT_PORT, META_PORT, MGMTD_PORT, GRPC_PORT = 8003, 8004, 8005, 8008, 8010
"""Defaults of BeeGFS 8.3.1: dist/etc/*.conf and beegfs-mgmtd.toml, read 2026-11-26."""
_NEXT_CLIENT = 100
"""From the UDP port of one mount's client to the next."""
_ADDRESS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}")
Setting = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{0,200}$")]
SettingName = Annotated[str, StringConstraints(pattern=r"^(tune|sys|conn|quota|log)[A-Za-z0-9]{1,60}$")]
_OWN = frozenset(
    {
        *("sysMgmtdHost", "connAuthFile", "connDisableAuthentication", "connClientPort", "connClientPortUDP"),
        *("connMgmtdPort", "connMgmtdPortTCP", "connMgmtdPortUDP", "connUseRDMA", "connInterfacesFile"),
        *("connRDMAInterfacesFile", "logType"),
    }
)


class BeegfsOptions(MountingOptions, ServesFilesystems, HoldsPackages, Listens, NeedsCertificates, GoesFirst):
    """BeeGFS' client where a filesystem of the kind is mounted, and its servers where they are declared."""

    role: ClassVar[str] = "beegfs"
    mounts_kinds: ClassVar[frozenset[FilesystemKind]] = frozenset({FilesystemKind.BEEGFS})
    serves_kinds: ClassVar[frozenset[FilesystemKind]] = frozenset({FilesystemKind.BEEGFS})
    secrets: ClassVar[tuple[str, ...]] = (AUTH_SECRET,)

    version: PackageVersion = Field(
        description="Exact version of BeeGFS' packages, e.g. `20:8.3.1`, as the package tool prints it; held.",
    )
    archive: PackageArchive | None = Field(
        default=None,
        description="Where the packages come from: a copy of www.beegfs.io/release. None: an archive that the nodes have.",
    )
    ofed_include: NodePath | None = Field(
        default=None,
        description="Headers of DOCA-OFED or MLNX_OFED that the module is built with, e.g. "
        "/usr/src/ofa_kernel/default/include. None: the kernel's own RDMA.",
    )
    settings: dict[SettingName, Setting] = Field(
        default_factory=dict,
        description="Further settings of the client, as in beegfs-client.conf, e.g. {tuneFileCacheType: native}.",
    )
    build_minutes: int = Field(
        default=20, ge=1, le=240, description="Time limit for building the module, in minutes."
    )
    server: Servers | None = Field(
        default=None,
        description="Servers on nodes of the cluster, BeeGFS 8. None: they are outside the cluster.",
    )

    @field_validator("settings")
    @classmethod
    def _are_free(cls, settings: dict[str, str]) -> dict[str, str]:
        for name in settings:
            if name in _OWN:
                raise mistake(f"`{name}` is set by this role.", "remove it")
        return settings

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """What servers outside authenticate with; servers of the cluster get one that is generated."""
        return () if self.server is not None else (AUTH_SECRET,)

    @property
    def module_version(self) -> str:
        """As the module names itself."""
        return upstream(self.version)

    @property
    def major(self) -> int:
        """7 or 8, or another that `problems` refuses."""
        return int(self.module_version.split(".")[0])

    def runs_on(self, node: Node) -> bool:
        """On nodes that mount one, and on its servers."""
        return super().runs_on(node) or bool(self.services(node))

    def services(self, node: Node) -> tuple[str, ...]:
        """Which servers a node runs: mgmtd, meta, storage."""
        if self.server is None:
            return ()
        here = {
            "mgmtd": any(one.kind in self.serves_kinds for one in node.served),
            "meta": node.name in self.server.meta.names,
            "storage": node.name in self.server.storage.names,
        }
        return tuple(service for service, runs in here.items() if runs)

    def goes_first(self, node: Node) -> bool:
        """Servers, before those that mount."""
        return bool(self.services(node))

    def packages(self, node: Node) -> tuple[str, ...]:
        """`name=version` of each."""
        found = [
            one.format(version=self.version)
            for one in (names(node.family, "beegfs-client").packages if self.mounted(node) else ())
        ]
        services = self.services(node)
        if services and self.server is not None:
            of = names(node.family, "beegfs-server").settings
            versions = {"mgmtd": self.server.mgmtd_version or self.version}
            found += [f"{of[one]}={versions.get(one, self.version)}" for one in services]
            groups = {"meta": self.server.meta, "storage": self.server.storage}
            if any(groups[one].rdma for one in services if one in groups):
                found.append(f"{of['rdma']}={self.version}")
        return tuple(found)

    def held_packages(self, node: Node) -> tuple[str, ...]:
        """All of them."""
        return tuple(one.partition("=")[0] for one in self.packages(node))

    def conf_file(self, filesystem: Filesystem) -> str:
        """The client's settings for a filesystem."""
        return f"{FOLDER}/rackwright-{filesystem.name}.conf"

    def client_port(self, node: Node, filesystem: Filesystem) -> int:
        """UDP port of the client: each mount is a client with a separate port."""
        place = [one.name for one in self.mounted(node)].index(filesystem.name)
        return CLIENT_PORT + _NEXT_CLIENT * place

    def mount_of(self, node: Node, filesystem: Filesystem) -> Mount:
        """By the client's settings file, which names the management daemon."""
        conf = self.conf_file(filesystem)
        options = options_of(filesystem, ("noatime",))
        return Mount(
            filesystem,
            what="beegfs_nodev",
            type="beegfs",
            options=(*options, f"cfgFile={conf}"),
            shown={**shown_of(options), "cfgFile": conf},
        )

    def listeners(self, node: Node) -> tuple[Listener, ...]:
        """The client's UDP ports, which the kernel holds, and the servers'."""
        found = [
            Listener("beegfs", (port, port), "udp", INNER_PURPOSES)
            for port in (self.client_port(node, one) for one in self.mounted(node))
        ]
        ports = {"mgmtd": MGMTD_PORT, "meta": META_PORT, "storage": STORAGE_PORT}
        for one in self.services(node):
            both: tuple[int, int] = (ports[one], ports[one])
            program = f"beegfs-{one}"
            found += [
                Listener(program, both, "tcp", INNER_PURPOSES),
                Listener(program, both, "udp", INNER_PURPOSES),
            ]
            if one == "mgmtd":
                found.append(Listener(program, (GRPC_PORT, GRPC_PORT), "tcp", INNER_PURPOSES))
        return tuple(found)

    def certificates(self, cluster: Cluster, node: Node) -> tuple[Certificate, ...]:
        """Of the management daemon's gRPC port."""
        if self.server is None or not self.server.tls or "mgmtd" not in self.services(node):
            return ()
        addresses = tuple(str(entry.address) for entry in node.addresses)
        return (
            Certificate(
                name="beegfs",
                key=f"{FOLDER}/key.pem",
                chain=f"{FOLDER}/cert.pem",
                names=(node.fqdn, node.name, *addresses),
                serves=tuple(f"{address}:{GRPC_PORT}" for address in addresses[:1]),
            ),
        )

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """The mounts', and what keeps servers from starting without their disks."""
        return (*super().unit_files(node), *(drop_in(one) for one in self.services(node) if one != "mgmtd"))

    def problems(self, cluster: Cluster) -> Iterator[Problem]:
        """As every role that mounts; versions, names and interfaces, and servers without folders."""
        yield from super().problems(cluster)
        if self.major not in (7, 8) or (self.major == 7 and not self.module_version.startswith("7.4")):
            yield "version", f"BeeGFS {self.module_version} is neither 7.4 nor 8.", "e.g. `20:8.3.1`"
        for node in cluster.running(self.role, self):
            found = tuple(self._of_client(cluster, node))
            if found:
                yield from found
                break
        if self.server is not None:
            yield from self._of_servers(cluster, self.server)

    def _of_client(self, cluster: Cluster, node: Node) -> Iterator[Problem]:
        for one in self.mounted(node):
            if self.major == 7 and not _ADDRESS.fullmatch(one.servers[0].address):
                yield (
                    "version",
                    f"{one.servers[0].name} of {one.name} is a DNS name, which the client of BeeGFS 7.4 does not resolve.",
                    "write its address, or declare version 8",
                )
            if one.rdma and any(rail.interface is None for rail in rails(cluster, node, one.network)):
                yield (
                    "",
                    f"The interfaces of {node.name} on {one.network}, by which {one.name} uses RDMA, are not declared.",
                    "declare `roles.network.networks`",
                )

    def _of_servers(self, cluster: Cluster, server: Servers) -> Iterator[Problem]:
        if self.major != 8:
            yield (
                "server",
                "Servers are set up for BeeGFS 8 alone.",
                "declare version 8, or servers outside the cluster",
            )
        served = [
            one for one in cluster.storage.values() if one.kind in self.serves_kinds and one.server_nodes
        ]
        if len(served) != 1:
            yield (
                "server",
                f"These servers belong to one filesystem, but {len(served)} name a node of the cluster as their server.",
                "one with `kind: beegfs, servers: [NODE]` under `storage`",
            )
        for key, group, folders in (
            ("meta", server.meta, (server.meta.folder,)),
            ("storage", server.storage, server.storage.folders),
        ):
            yield from self._of_group(cluster, f"server.{key}", group.names, folders)
        for node in cluster.running(self.role, self):
            why = why_node_lacks(node, Capability.NETWORK_FILESYSTEMS)
            if why is not None and self.services(node):
                yield (
                    "server",
                    f"{node.name} cannot run BeeGFS' servers here: {why}.",
                    "name a virtual machine or a physical node",
                )
                break
        if server.tls and served:
            node = cluster.by_name[served[0].server_nodes[0]]
            if node.offers(IssuesCertificates) is None:
                yield (
                    "server.tls",
                    f"No role issues a certificate for {node.name}.",
                    "add `site_ca: {}` under `roles`, or write `tls: false`",
                )

    def _of_group(
        self, cluster: Cluster, key: str, nodes: tuple[str, ...], folders: tuple[str, ...]
    ) -> Iterator[Problem]:
        for name in nodes:
            if name not in cluster.by_name:
                yield f"{key}.nodes", f"There is no node {name}.", None
                return
            for folder in folders:
                if made_below(cluster.by_name[name], folder) is None:
                    yield (
                        key,
                        f"{folder} of {name} is not on a separate filesystem.",
                        "declare one under `roles.storage_layout.filesystems`",
                    )
                    return


def drop_in(service: str) -> str:
    """The drop-in of a server's unit."""
    return f"/etc/systemd/system/beegfs-{service}.service.d/rackwright.conf"


def made_below(node: Node, folder: str) -> str | None:
    """The filesystem on the node's own drives that a folder is on, by its mount point."""
    makes = node.offers(MakesFilesystems)
    made = () if makes is None else makes.made_filesystems(node)
    found = [path for path in made if folder == path or folder.startswith(f"{path}/")]
    return max(found, key=len, default=None)
