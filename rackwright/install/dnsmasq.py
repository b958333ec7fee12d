"""dnsmasq on the boot network: its configuration, the machines that it answers, and its process.

Machines with `boot: pxe` and `boot: http` share one instance: only one program can serve DHCP on an address.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path
from shutil import which

from rackwright.errors import InstallError
from rackwright.install import record
from rackwright.install.medium import way_of
from rackwright.install.settings import inside_network
from rackwright.model.cluster import Cluster, Node
from rackwright.model.install import BootNetwork, BootWay

_START_SECONDS, _END_SECONDS = 1.0, 10.0


@dataclass(frozen=True, slots=True)
class Answered:
    """A machine that gets an answer; all others get none."""

    mac: str
    address: IPv4Address
    name: str
    url: str | None = field(default=None, repr=False)
    """URL that its firmware downloads. None: it boots by PXE."""

    @property
    def host(self) -> str:
        """Its line in the hosts file. Without `set:`: dnsmasq 2.90 crashes when it re-reads such a line."""
        return f"{self.mac},{self.address},{self.name}\n"

    @property
    def option(self) -> str:
        """Its line in the options file: the URL, only for UEFI HTTP boot of x86_64."""
        return "" if self.url is None else f"tag:{_tag(self.name)},tag:http,option:bootfile-name,{self.url}\n"


class Dnsmasq:
    """The process, and the files that it re-reads whenever a machine is armed or disarmed."""

    def __init__(self, cluster: Cluster, network: BootNetwork, folder: Path, nodes: Sequence[Node]) -> None:
        self._cluster, self._network, self._folder, self._nodes = cluster, network, folder, nodes
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """Log of requests and answers of the last run; separate from the system log, because URLs are secret."""
        return record.folder(self._cluster.name) / "dnsmasq.log"

    def answer(self, machines: Iterable[Answered]) -> None:
        """From now on, answer exactly these machines."""
        machines = list(machines)
        (self._folder / "hosts").write_text("".join(one.host for one in machines))
        (self._folder / "options").write_text("".join(one.option for one in machines))
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)  # dnsmasq(8): reads both files again

    def require_running(self) -> None:
        """InstallError if it has exited since it was started."""
        if self._process is not None and (code := self._process.poll()) is not None:
            raise self._ended(code)

    def start(self) -> None:
        """Run it until `stop`; InstallError if it exits early."""
        self.answer(())
        settings = self._folder / "dnsmasq.conf"
        settings.write_text(dnsmasq_conf(self._cluster, self._network, self._folder, self._nodes))
        argv = [
            "dnsmasq",
            "--keep-in-foreground",
            f"--conf-file={settings}",
            f"--pid-file={self._folder / 'pid'}",
        ]
        with open(self.log, "wb", opener=partial(os.open, mode=0o600)) as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "--", *inside_network(self._cluster, argv)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise self._ended(self._process.wait(_START_SECONDS))

    def stop(self) -> None:
        """Stop it."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def _ended(self, code: int) -> InstallError:
        output = " ".join(self.log.read_text(errors="replace").strip().splitlines()[-3:])
        return InstallError(f"dnsmasq exited with code {code}: {output}", hint=f"see {self.log}")


def require_dnsmasq(ways: Iterable[BootWay]) -> None:
    """InstallError if dnsmasq, which these boot methods need, is missing."""
    if which("dnsmasq") is None:
        declared = [f"`boot: {way}`" for way in sorted(ways)]
        raise InstallError(
            f"dnsmasq is missing; {' and '.join(declared)} {'need' if len(declared) > 1 else 'needs'} it.",
            hint="apt-get install dnsmasq-base",
        )


def dnsmasq_conf(cluster: Cluster, network: BootNetwork, folder: Path, nodes: Sequence[Node]) -> str:
    """dnsmasq's configuration: no DNS, no address for unknown machines, and what the declared boot methods need."""
    cidr = cluster.networks[network.network].subnet()
    common = f"""\
port=0
listen-address={network.server}
bind-interfaces
user=root
log-dhcp
log-facility=-
leasefile-ro
dhcp-range={cidr.network_address},static,{cidr.netmask}
dhcp-hostsfile={folder / "hosts"}
dhcp-optsfile={folder / "options"}
dhcp-ignore=tag:!known
dhcp-option=option:router
"""
    ways = sorted({way_of(node) for node in nodes})
    tags = [
        f"dhcp-mac=set:{tag},{node.mac}\n"
        for node in nodes
        if way_of(node) is BootWay.HTTP
        for tag in ("byhttp", _tag(node.name))
    ]
    return common + "".join(_OF_WAY[way].format(folder=folder) for way in ways) + "".join(tags)


def _tag(node: str) -> str:
    return f"http-{node}"


# Option 93, the processor architecture (RFC 4578 and its IANA registry): 7 and 9 are x86_64 by PXE, 16 is x86_64 by
# HTTP. Firmware takes an offer of HTTP boot only where option 60 is its own HTTPClient (UEFI 2.10, 24.7).
_OF_WAY = {
    BootWay.PXE: """\
dhcp-match=set:efi,option:client-arch,7
dhcp-match=set:efi,option:client-arch,9
dhcp-boot=tag:efi,tag:!byhttp,shimx64.efi
enable-tftp
tftp-root={folder}/tftp
tftp-unique-root
tftp-secure
""",
    BootWay.HTTP: """\
dhcp-vendorclass=set:httpclient,HTTPClient
dhcp-match=set:http,option:client-arch,16
dhcp-option-force=tag:httpclient,option:vendor-class,HTTPClient
""",
}
