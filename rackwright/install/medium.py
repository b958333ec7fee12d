"""How a machine boots the agent: from its BMC's virtual CD, or over the boot network."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rackwright.bmc.interface import BmcClient, BootTarget
from rackwright.install.desk import Case
from rackwright.install.media import ARGUMENTS, make_iso
from rackwright.install.record import Record, folder
from rackwright.model.bmc import BmcProtocol
from rackwright.model.cluster import Cluster, Node
from rackwright.model.install import BootNetwork, BootWay


class Medium(Protocol):
    """One machine's boot medium."""

    def make(self, record: Record, token: str) -> str:
        """Create it, with the token in it; returns its name on our server."""

    def insert(self, bmc: BmcClient, media: str) -> None:
        """Make the machine boot from it once."""

    def resume(self, media: str) -> None:
        """Serve a medium that an earlier process created."""

    def remove(self, bmc: BmcClient) -> None:
        """Remove it from the machine and delete it; the next boots are normal."""


@dataclass
class VirtualMedia:
    """A virtual CD that the BMC downloads from our server, at a random path."""

    cluster: Cluster
    node: Node
    network: BootNetwork
    case: Case
    agent: Path
    """Folder of the agent image."""
    authority: bytes
    """PEM of the CA that the agent is to trust."""

    def make(self, record: Record, token: str) -> str:
        """The CD image; 192 random bits in its path keep others on the BMC network from downloading it."""
        media = f"/media/{secrets.token_urlsafe(24)}.iso"
        text = json.dumps(config(self.cluster, self.node, self.network, record, token)).encode()
        self.file.parent.mkdir(mode=0o700, exist_ok=True)
        make_iso(self.agent, text, self.authority, self.file, arguments(self.node))
        self.resume(media)
        return media

    def insert(self, bmc: BmcClient, media: str) -> None:
        bmc.trust_media(self.authority.decode())  # BMCs that accept no CA download it without verification
        bmc.insert_media(f"https://{self.network.bmc_server}:{self.network.port}{media}")
        bmc.set_boot(BootTarget.CD, once=True)

    def resume(self, media: str) -> None:
        self.case.media[media] = self.file

    def remove(self, bmc: BmcClient) -> None:
        self.case.media.clear()
        self.file.unlink(missing_ok=True)
        try:
            bmc.eject_media()
        finally:  # do each, even if the other fails
            bmc.set_boot(BootTarget.NONE, once=False)

    @property
    def file(self) -> Path:
        """Where the image of the CD is."""
        return folder(self.cluster.name) / "media" / f"{self.node.name}.iso"


def way_of(node: Node) -> BootWay:
    """The declared boot method; for a node that is only discovered, what its BMC supports."""
    if node.install is not None:
        return node.install.boot
    ipmi = node.bmc is not None and node.bmc.protocol is BmcProtocol.IPMI
    return BootWay.PXE if ipmi else BootWay.VIRTUAL_MEDIA


def arguments(node: Node) -> str:
    """Kernel arguments of the agent: those that the node's kernel is declared to need; no secrets."""
    install = node.install
    if install is None:
        return ARGUMENTS
    console = () if install.console is None else (f"console={install.console}",)
    return " ".join((*console, *install.kernel_arguments))


def config(
    cluster: Cluster, node: Node, network: BootNetwork, record: Record, token: str
) -> dict[str, object]:
    """config.json of the agent."""
    boot = cluster.networks[network.network]
    address = node.address_on(network.network)
    prefix = boot.subnet().prefixlen
    return {
        "version": 1,
        "server": f"https://{network.server}:{network.port}",
        "token": token,
        "node": node.name,
        "run": record.run,
        "serial": (None if record.mode == "discover" else node.serial) or record.serial or None,
        "mode": record.mode,
        "network": {
            "mac": node.mac or record.mac,
            "address": None if address is None else f"{address}/{prefix}",
            "gateway": None if boot.gateway is None else str(boot.gateway),
            "vlan": _vlan(cluster, node, network),
        },
    }


def _vlan(cluster: Cluster, node: Node, network: BootNetwork) -> int | None:
    """The declared VLAN applies to the management network; any other boot network is untagged at the node."""
    on_management = network.network == cluster.management.name
    return node.install.vlan if node.install is not None and on_management else None
