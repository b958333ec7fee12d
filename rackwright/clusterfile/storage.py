"""The `storage:` section: filesystems, their servers and the nodes that use them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rackwright.clusterfile.addresses import Addresses
from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.report import Report
from rackwright.clusterfile.sections import read_section
from rackwright.clusterfile.storage_mistakes import check_paths, path_mistake
from rackwright.clusterfile.storage_section import FilesystemSection
from rackwright.documents.nearest import short, suggest
from rackwright.documents.yaml_data import Data
from rackwright.model.cluster import Network
from rackwright.model.mount_options import option_mistakes
from rackwright.model.ranges import RangeMistake, expand
from rackwright.model.storage import Filesystem, FilesystemKind, FilesystemPurpose, Server
from rackwright.model.text import label_mistake
from rackwright.model.types import NetworkPurpose

_ADDRESS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
_LNET = re.compile(r"(tcp|o2ib|kfi|gni)[0-9]{0,4}")
_NEEDS: Mapping[FilesystemKind, tuple[str, ...]] = {
    FilesystemKind.NFS: ("servers", "export"),
    FilesystemKind.VAST: ("servers", "export"),
    FilesystemKind.LUSTRE: ("servers", "fsname"),
    FilesystemKind.BEEGFS: ("servers",),
    FilesystemKind.WEKA: ("servers", "fsname"),
    FilesystemKind.CEPHFS: ("servers", "fsname"),
    FilesystemKind.GPFS: ("fsname",),
    FilesystemKind.LOCAL: (),
}
_MAY: Mapping[FilesystemKind, tuple[str, ...]] = {FilesystemKind.CEPHFS: ("export",)}
_ONE_SERVER = (FilesystemKind.NFS, FilesystemKind.BEEGFS)
_RDMA = (FilesystemKind.NFS, FilesystemKind.VAST, FilesystemKind.LUSTRE, FilesystemKind.BEEGFS)
_EXAMPLES = {"servers": "servers: [head1]", "export": "export: /srv/home", "fsname": "fsname: scratch"}
_FREE_PERCENT = {FilesystemPurpose.SOFTWARE: 2.0, FilesystemPurpose.CHECKPOINT: 10.0}


def read_storage(
    report: Report,
    raw: Data,
    groups: list[Group],
    networks: Mapping[str, Network],
    addresses: Addresses,
) -> dict[str, Filesystem]:
    """The valid filesystems, in file order; mistakes are reported."""
    found: dict[str, Filesystem] = {}
    for name, entry in raw.items() if isinstance(raw, dict) else ():
        path = ("storage", name)
        wrong = label_mistake(name)
        if wrong is not None:
            report.add(path, wrong, key=True)
        section = read_section(report, FilesystemSection, entry, path)
        if section is not None:
            found[name] = _Reading(report, name, section, groups, networks, addresses).filesystem()
    check_paths(report, found)
    return found


@dataclass
class _Reading:
    """One filesystem during parsing."""

    report: Report
    name: str
    section: FilesystemSection
    groups: list[Group]
    networks: Mapping[str, Network]
    addresses: Addresses

    def filesystem(self) -> Filesystem:
        section = self.section
        self._check_keys()
        if (wrong := path_mistake(section.path)) is not None:
            self._add("path", *wrong)
        if section.export is not None and (wrong := path_mistake(section.export, mounted=False)) is not None:
            self._add("export", *wrong)
        for index, message, hint in option_mistakes(section.kind, section.options):
            self.report.add(("storage", self.name, "options", index), message, hint)
        network = self._network()
        self._check_rdma(network)
        free = section.min_free_percent
        return Filesystem(
            name=self.name,
            kind=section.kind,
            purpose=section.purpose,
            path=section.path,
            servers=self._servers(network),
            export=section.export,
            fsname=section.fsname,
            network=network.name if network is not None else "",
            network_purpose=network.purpose if network is not None else NetworkPurpose.MANAGEMENT,
            rdma=section.rdma,
            options=section.options,
            read_only=section.read_only,
            automount=section.automount and section.kind.shared,
            nodes=self._nodes(),
            quota=section.quota,
            floor=section.floor,
            bench=section.bench,
            min_free_percent=_FREE_PERCENT.get(section.purpose, 5.0) if free is None else free,
            min_free_files_percent=section.min_free_files_percent,
            stat_seconds=section.stat_seconds,
        )

    def _add(self, key: str, message: str, hint: str | None = None, *, of_key: bool = False) -> None:
        self.report.add(("storage", self.name, key), message, hint, key=of_key)

    def _check_keys(self) -> None:
        """Check what the kind requires and what it does not support."""
        kind, needed = self.section.kind, _NEEDS[self.section.kind]
        for key in ("servers", "export", "fsname"):
            given = bool(getattr(self.section, key))
            clean = self.report.clean(("storage", self.name, key))
            if not given and key in needed and clean:
                self.report.add(
                    ("storage", self.name),
                    f"{kind.value} needs `{key}`.",
                    f"e.g. `{_EXAMPLES[key]}`",
                    key=True,
                )
            elif given and key not in (*needed, *_MAY.get(kind, ())):
                self._add(key, f"{kind.value} does not support `{key}`.", "remove it", of_key=True)
        if kind in _ONE_SERVER and len(self.section.servers) > 1:
            self._add(
                "servers",
                f"{kind.value} takes only one server.",
                "name its floating address, or use `kind: vast`, which takes several",
            )
        if self.section.purpose is FilesystemPurpose.STATE and not kind.shared:
            self._add("kind", "A local filesystem cannot hold state that heads share.", "e.g. `kind: nfs`")

    def _network(self) -> Network | None:
        name = self.section.network
        if name is None:
            return next(
                (one for one in self.networks.values() if one.purpose is NetworkPurpose.MANAGEMENT), None
            )
        if name not in self.networks:
            if self.report.clean(("networks", name)):
                hint = suggest(name, self.networks, what="networks")
                self._add("network", f"Network {short(name)} does not exist.", hint)
            return None
        return self.networks[name]

    def _check_rdma(self, network: Network | None) -> None:
        if not self.section.rdma or network is None:
            return
        kind = self.section.kind
        if kind not in _RDMA:
            self._add("rdma", f"{kind.value} does not support `rdma`.", "remove it")
        elif not network.kind.rdma:
            fabrics = [one.name for one in self.networks.values() if one.kind.rdma]
            hint = (
                f"e.g. `network: {fabrics[0]}`"
                if fabrics
                else "remove `rdma`, or declare the network's `kind`"
            )
            self._add("rdma", f"{network.name} is {network.kind.value}, which does not support RDMA.", hint)

    def _servers(self, network: Network | None) -> tuple[Server, ...]:
        found: dict[str, Server] = {}
        for index, text in enumerate(self.section.servers):
            for server in self._named(index, text, network):
                if server.name in found:
                    self._server_mistake(index, f"{server.name} is listed twice.")
                found.setdefault(server.name, server)
        return tuple(found.values())

    def _named(self, index: int, text: str, network: Network | None) -> list[Server]:
        """Servers of one entry: nodes of a NodeSet, or one address or name."""
        lustre = self.section.kind is FilesystemKind.LUSTRE
        host, at, lnet = text.partition("@")
        if at and not (lustre and _LNET.fullmatch(lnet)):
            example = "e.g. `10.0.0.5@o2ib`" if lustre else "e.g. `10.0.0.5`"
            self._server_mistake(index, f"{short(text)} is not a valid server.", example)
            return []
        if _ADDRESS.fullmatch(host):
            if any(int(part) > 255 for part in host.split(".")):
                self._server_mistake(index, f"{short(host)} is not a valid IPv4 address.")
            owner = self._node_at(host)
            if owner is not None and not at:
                self._check_network(index, owner, host, network)
            return [Server(name=owner or text, address=text, node=owner is not None)]
        try:
            names: tuple[str, ...] = expand(host)
        except RangeMistake:
            names = (host,)
        nodes = [name for name in names if name in self.addresses]
        if nodes and len(nodes) == len(names):
            return [one for name in nodes if (one := self._node(index, name, lnet, network)) is not None]
        if "." in host and _HOST.fullmatch(host) and not nodes:
            return [Server(name=text, address=text, node=False)]
        hint = suggest(host, self.addresses, what="nodes")
        if self.report.clean(("nodes",)):
            self._server_mistake(
                index,
                f"{short(host)} is not a node of this cluster, an address, or a DNS name with a dot.",
                hint,
            )
        return []

    def _node(self, index: int, name: str, lnet: str, network: Network | None) -> Server | None:
        entries = [one for one in self.addresses[name] if network is not None and one.network == network.name]
        if not entries:
            if network is not None and self.report.clean(("nodes",)):
                hint = f"add one to its group, e.g. `addresses: {{{network.name}: ...}}`"
                self._server_mistake(index, f"{name} has no address on {network.name}.", hint)
            return None
        address = str(entries[0].address)
        return Server(name=name, address=f"{address}@{lnet}" if lnet else address, node=True)

    def _check_network(self, index: int, owner: str, address: str, network: Network | None) -> None:
        """Check the server's network: exports and firewall rules cover only the filesystem's network."""
        (of, *_) = [one.network for one in self.addresses[owner] if str(one.address) == address]
        if network is not None and of != network.name:
            self._server_mistake(
                index,
                f"{address} is an address of {owner}, but not on {network.name}.",
                f"declare `network: {of}`, or write `servers: [{owner}]`",
            )

    def _node_at(self, address: str) -> str | None:
        """The node that has this address."""
        return next(
            (
                name
                for name, entries in self.addresses.items()
                if any(str(one.address) == address for one in entries)
            ),
            None,
        )

    def _server_mistake(self, index: int, message: str, hint: str | None = None) -> None:
        self.report.add(("storage", self.name, "servers", index), message, hint)

    def _nodes(self) -> tuple[str, ...]:
        """Nodes that mount the filesystem, in file order."""
        section, wanted = self.section, None
        if section.nodes is not None:
            try:
                wanted = set(expand(section.nodes))
            except RangeMistake as error:
                self._add("nodes", error.message, error.hint)
                return ()
            missing = sorted(wanted - self.addresses.keys())
            if missing and self.report.clean(("nodes",)):
                hint = suggest(missing[0], self.addresses, what="nodes")
                self._add("nodes", f"Node {missing[0]} does not exist.", hint)
        roles = frozenset(section.roles or ())
        found = tuple(
            name
            for group in self.groups
            for name in group.names
            if (wanted is None or name in wanted) and (not roles or not group.roles.isdisjoint(roles))
        )
        if (
            not found
            and self.groups
            and self.report.clean(("storage", self.name))
            and self.report.clean(("nodes",))
        ):
            self.report.add(
                ("storage", self.name),
                "No node mounts this filesystem.",
                "extend `nodes` or `roles`",
                key=True,
            )
        return found
