"""PXE and UEFI HTTP boot: answers exactly the armed machines, during an installation.

The token crosses the boot network unencrypted here, so anyone on it can read it; with virtual media it stays between
head and BMC. A token permits one installation of one machine, once.
"""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from threading import Lock

from rackwright.bmc.interface import BmcClient, BootTarget
from rackwright.errors import InstallError
from rackwright.install.dnsmasq import Answered, Dnsmasq, require_dnsmasq
from rackwright.install.media import Armed, netboot_files, require_macs
from rackwright.install.medium import arguments, config, way_of
from rackwright.install.netboot_http import HttpFiles, HttpServer
from rackwright.install.record import Record
from rackwright.install.settings import listener, new_socket
from rackwright.install.strangers import answering
from rackwright.model.cluster import Cluster, Node
from rackwright.model.install import BootNetwork, BootWay
from rackwright.model.ranges import fold

NETBOOT = frozenset((BootWay.PXE, BootWay.HTTP))
"""Boot methods that need an answer from us on the boot network."""


@dataclass
class NetbootServer:
    """Serves the boot network; a machine that is not armed gets no answer."""

    cluster: Cluster
    network: BootNetwork
    agent: Path
    """Folder of the agent image."""
    authority: bytes
    folder: Path
    nodes: tuple[Node, ...]
    """Nodes of the run that boot over the network."""
    _armed: dict[str, tuple[Armed | None, Answered]] = field(default_factory=dict)
    """None: its files are in a separate folder."""
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._files = HttpFiles(self.agent)
        self._ways = frozenset(map(way_of, self.nodes))
        self._dnsmasq = Dnsmasq(self.cluster, self.network, self.folder, self.nodes)
        self._running = ExitStack()

    def arm(self, node: Node, mac: str, content: bytes) -> None:
        """Serve one more machine on this port; if that fails, the others are not affected."""
        address = self._address(node)
        armed = Armed(mac, content, self.authority, arguments(node))
        require_macs([armed])
        self._dnsmasq.require_running()
        with self._lock:
            try:
                url = self._serve(node, address, armed) if way_of(node) is BootWay.HTTP else None
                self._armed[node.name] = (armed, Answered(mac, address, node.name, url))
                self._publish()
            except BaseException:
                self._forget(node)
                raise

    def answer(self, node: Node, mac: str, put: Callable[[Path], None]) -> None:
        """Serve one more machine by PXE, with the files that `put` writes instead of the agent's."""
        address = self._address(node)
        self._dnsmasq.require_running()
        with self._lock:
            put(self._folder_of(node))
            self._armed[node.name] = (None, Answered(mac, address, node.name))
            self._publish()

    def url(self, node: Node) -> str | None:
        """What the firmware of an armed machine downloads by HTTP."""
        with self._lock:
            found = self._armed.get(node.name)
        return None if found is None else found[1].url

    def disarm(self, node: Node) -> None:
        """Stop serving it, and remove its token."""
        with self._lock:
            if self._forget(node):
                self._publish()

    def start(self) -> None:
        """Serve until `stop`; InstallError if something that the declared methods need is missing or in use."""
        require_dnsmasq(self._ways)
        if BootWay.HTTP in self._ways:
            opened = listener(
                self.cluster,
                self.network.server,
                self.network.http_port,
                whom="Machines with `boot: http`",
                hint="if another program uses the port, set another: `boot_network: {http_port: 8081}`",
            )
            self._running.callback(HttpServer(self._files, opened).close)
        if BootWay.PXE in self._ways:
            (self.folder / "tftp").mkdir(parents=True, exist_ok=True)  # dnsmasq requires the folder
        self._require_no_other()
        self._running.callback(self._dnsmasq.stop)
        self._dnsmasq.start()

    def stop(self) -> None:
        """Serve nothing more."""
        self._running.close()

    def _require_no_other(self) -> None:
        """InstallError if another DHCP server answers these machines: they could boot something else."""
        found = answering(
            new_socket(self.cluster, socket.SOCK_DGRAM),
            self.network.server,
            self.cluster.networks[self.network.network].subnet(),
            [node.mac for node in self.nodes if node.mac is not None],
        )
        if not found:
            return
        names = {node.mac: node.name for node in self.nodes}
        servers = ", ".join(sorted(set(found.values())))
        raise InstallError(
            f"Another DHCP server ({servers}) answers {fold(names[mac] for mac in found)} on {self.network.network}.",
            hint="make it ignore the MACs of these machines, or declare `boot: virtual-media`",
        )

    def _address(self, node: Node) -> IPv4Address:
        address = node.address_on(self.network.network)
        if address is None:
            raise InstallError(
                f"{node.name} has no address on {self.network.network}, but needs one for `boot: {way_of(node)}`.",
                hint=f"add `addresses: {{{self.network.network}: ...}}` to its group, or declare `boot: virtual-media`",
            )
        return address

    def _folder_of(self, node: Node) -> Path:
        return self.folder / "tftp" / str(node.address_on(self.network.network))  # `tftp-unique-root`

    def _serve(self, node: Node, address: IPv4Address, armed: Armed) -> str:
        path = self._files.arm(node.name, address, armed)
        return f"http://{self.network.server}:{self.network.http_port}{path}"

    def _forget(self, node: Node) -> bool:
        self._files.disarm(node.name)
        shutil.rmtree(self._folder_of(node), ignore_errors=True)
        return self._armed.pop(node.name, None) is not None

    def _publish(self) -> None:
        if BootWay.PXE in self._ways:
            by_tftp = [
                armed
                for armed, answered in self._armed.values()
                if armed is not None and answered.url is None
            ]
            netboot_files(self.agent, self.folder / "tftp", by_tftp)
        self._dnsmasq.answer(answered for _, answered in self._armed.values())


@contextmanager
def serving(server: NetbootServer) -> Iterator[None]:
    """Run a server while the block runs."""
    try:
        server.start()
        yield
    finally:
        server.stop()


def new_folder() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder for served files; only root, the user of dnsmasq, can enter it.

    The files in it are world-readable: dnsmasq as root serves no others (seen with 2.90, 2026-11-27).
    """
    return tempfile.TemporaryDirectory(prefix="rackwright-netboot-")


@dataclass
class NetbootMedium:
    """One machine that boots the agent over the network."""

    node: Node
    cluster: Cluster
    network: BootNetwork
    server: NetbootServer

    def make(self, record: Record, token: str) -> str:
        content = json.dumps(config(self.cluster, self.node, self.network, record, token)).encode()
        self.server.arm(self.node, record.mac, content)
        return way_of(self.node).value

    def insert(self, bmc: BmcClient, media: str) -> None:
        if way_of(self.node) is BootWay.HTTP:
            bmc.set_boot(BootTarget.HTTP, once=True, http_uri=self.server.url(self.node))
        else:
            bmc.set_boot(BootTarget.PXE, once=True)

    def resume(self, media: str) -> None:
        """The agent is already running: nothing is served to it a second time."""

    def remove(self, bmc: BmcClient) -> None:
        self.server.disarm(self.node)
        bmc.set_boot(BootTarget.NONE, once=False)
