"""PXE: DHCP and TFTP for exactly the machines that are armed, by dnsmasq, while an installation runs.

The token goes over the boot network in the clear here, which anyone on it can read; virtual media keep it between
head and BMC. What a token opens is one installation of one machine, once.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from threading import Lock

from rackwright.bmc.interface import BmcClient, BootTarget
from rackwright.errors import InstallError
from rackwright.install.media import Armed, netboot_files
from rackwright.install.medium import arguments, config
from rackwright.install.record import Record
from rackwright.install.settings import inside_network
from rackwright.model.cluster import Cluster, Node
from rackwright.model.install import BootNetwork

_END_SECONDS = 10.0


@dataclass
class NetbootServer:
    """dnsmasq on the boot network; a machine that is not armed gets no answer at all."""

    cluster: Cluster
    network: BootNetwork
    agent: Path
    """Folder of the agent image."""
    authority: bytes
    folder: Path
    _armed: dict[str, tuple[Armed, Node]] = field(default_factory=dict)
    _further: dict[str, str] = field(default_factory=dict)
    """Lines of the file of hosts for machines whose TFTP root is a folder for them alone."""
    _lock: Lock = field(default_factory=Lock)
    _process: subprocess.Popen[bytes] | None = None

    def arm(self, node: Node, mac: str, content: bytes) -> None:
        """Answer one more machine, at this port of it; one that cannot be answered keeps no other from it."""
        if node.address_on(self.network.network) is None:
            raise InstallError(
                f"{node.name} has no address on {self.network.network}, which it would get for PXE.",
                hint=f"`addresses: {{{self.network.network}: ...}}` in its group, or `boot: virtual-media`",
            )
        with self._lock:
            self._armed[node.name] = (Armed(mac, content, self.authority, arguments(node)), node)
            try:
                self._publish()
            except BaseException:
                del self._armed[node.name]
                raise

    def answer(self, node: Node, mac: str, put: Callable[[Path], None]) -> None:
        """Answer one more machine, with the files that `put` puts into its folder in place of the agent's."""
        address = node.address_on(self.network.network)
        with self._lock:
            put(self._folder_of(node))
            self._further[node.name] = f"{mac},{address},{node.name}\n"
            self._publish()

    def disarm(self, node: Node) -> None:
        """Answer it no more, and remove its token."""
        with self._lock:
            shutil.rmtree(self._folder_of(node), ignore_errors=True)
            if any([self._armed.pop(node.name, None), self._further.pop(node.name, None)]):
                self._publish()

    def _folder_of(self, node: Node) -> Path:
        return self.folder / "tftp" / str(node.address_on(self.network.network))  # `tftp-unique-root`

    def _publish(self) -> None:
        netboot_files(self.agent, self.folder / "tftp", [armed for armed, _ in self._armed.values()])
        hosts = [
            f"{armed.mac},{node.address_on(self.network.network)},{node.name}\n"
            for armed, node in self._armed.values()
        ]
        (self.folder / "hosts").write_text("".join([*hosts, *self._further.values()]))
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)  # dnsmasq(8): reads the file of hosts again

    def start(self) -> None:
        """Run dnsmasq until `stop`; InstallError where it does not stay up."""
        require_dnsmasq()
        (self.folder / "tftp").mkdir(parents=True, exist_ok=True)
        (self.folder / "hosts").touch()
        settings = self.folder / "dnsmasq.conf"
        settings.write_text(dnsmasq_conf(self.cluster, self.network, self.folder))
        argv = [
            "dnsmasq",
            "--keep-in-foreground",
            f"--conf-file={settings}",
            f"--pid-file={self.folder / 'pid'}",
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "--", *inside_network(self.cluster, argv)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(1.0)
            said = (self.folder / "log").read_text(errors="replace").strip().splitlines()[-3:]
            raise InstallError(f"dnsmasq ended with exit code {code}: {' '.join(said)}")

    def stop(self) -> None:
        """End dnsmasq."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()


@contextmanager
def serving(server: NetbootServer) -> Iterator[None]:
    """Run a server while the block runs."""
    server.start()
    try:
        yield
    finally:
        server.stop()


def require_dnsmasq() -> None:
    """InstallError where the program that machines are served with by PXE is missing."""
    if which("dnsmasq") is None:
        raise InstallError(
            "dnsmasq, which `boot: pxe` needs, is missing.", hint="apt-get install dnsmasq-base"
        )


def new_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for what is served, gone when the run has ended; only root, whom dnsmasq runs as, gets into it.

    The files in it are readable for all: dnsmasq as root serves no others (seen with 2.90, 2026-11-27).
    """
    return tempfile.TemporaryDirectory(prefix="rackwright-netboot-")


def dnsmasq_conf(cluster: Cluster, network: BootNetwork, folder: Path) -> str:
    """dnsmasq's settings: no DNS, no address for strangers, UEFI machines alone (option 93: 7 and 9, RFC 4578)."""
    cidr = cluster.networks[network.network].subnet()
    return f"""\
port=0
listen-address={network.server}
bind-interfaces
user=root
log-dhcp
leasefile-ro
dhcp-range={cidr.network_address},static,{cidr.netmask}
dhcp-hostsfile={folder / "hosts"}
dhcp-ignore=tag:!known
dhcp-option=option:router
dhcp-match=set:efi,option:client-arch,7
dhcp-match=set:efi,option:client-arch,9
dhcp-boot=tag:efi,shimx64.efi
enable-tftp
tftp-root={folder / "tftp"}
tftp-unique-root
tftp-secure
"""


@dataclass
class NetbootMedium:
    """One machine that boots the agent by PXE."""

    node: Node
    cluster: Cluster
    network: BootNetwork
    server: NetbootServer

    def make(self, record: Record, token: str) -> str:
        self.server.arm(
            self.node,
            record.mac,
            json.dumps(config(self.cluster, self.node, self.network, record, token)).encode(),
        )
        return "pxe"

    def insert(self, bmc: BmcClient, media: str) -> None:
        bmc.set_boot(BootTarget.PXE, once=True)

    def resume(self, media: str) -> None:
        """The agent runs already: nothing is served to it a second time."""

    def remove(self, bmc: BmcClient) -> None:
        self.server.disarm(self.node)
        bmc.set_boot(BootTarget.NONE, once=False)
