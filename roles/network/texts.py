"""The files of a node's network, for the program that its release configures networks with."""

from __future__ import annotations

from uuid import UUID, uuid5

from rackwright.model.cluster import Node
from rackwright.render import render
from rackwright.roles.network.layout import Device, Layout

UNITS = "/etc/systemd/network"
PREFIX = "05-rackwright-"
"""Before what installers, cloud-init and netplan (10-) write: of several files that match, the first counts."""
NETPLAN = "/etc/netplan/70-rackwright.yaml"
INSTALLERS = ("/etc/netplan/00-installer-config.yaml", "/etc/netplan/50-cloud-init.yaml")
"""Ubuntu's own netplan files: netplan merges all that are there, so the old ones go, and come back with a rollback."""
CLOUD_INIT = "/etc/cloud/cloud.cfg.d/99-rackwright-network.cfg"
KEYFILES = "/etc/NetworkManager/system-connections"
_NAMESPACE = UUID("6f2c1f0e-0f0b-5c86-9f0a-2d0a5b7c9e11")


def files(node: Node, layout: Layout) -> dict[str, str | None]:
    """Path to text; None: what would contradict them is to be absent."""
    links: dict[str, str | None] = {
        f"{UNITS}/{PREFIX}{port.name}.link": render("network/link.j2", device=port) for port in layout.ports
    }
    return links | _OF[node.os.network](node, layout)


def mode(node: Node) -> str:
    """NetworkManager and netplan want theirs readable by root alone; networkd is not root."""
    return "644" if node.os.network == "networkd" else "600"


def _networkd(_: Node, layout: Layout) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for device in layout.devices:
        found[f"{UNITS}/{PREFIX}{device.name}.network"] = render("network/network.j2", device=device)
    for device in layout.virtual:
        found[f"{UNITS}/{PREFIX}{device.name}.netdev"] = render("network/netdev.j2", device=device)
    return found


def _netplan(_: Node, layout: Layout) -> dict[str, str | None]:
    return {
        NETPLAN: render("network/netplan.yaml.j2", devices=layout.devices),
        CLOUD_INIT: "# Managed by rackwright.\nnetwork: {config: disabled}\n",
        **dict.fromkeys(INSTALLERS),
    }


def _networkmanager(node: Node, layout: Layout) -> dict[str, str | None]:
    return {
        f"{KEYFILES}/rackwright-{device.name}.nmconnection": _keyfile(node, device)
        for device in layout.devices
    }


def _keyfile(node: Node, device: Device) -> str:
    uuid = uuid5(_NAMESPACE, f"{node.fqdn} {device.name}")
    return render("network/keyfile.nmconnection.j2", device=device, uuid=uuid)


_OF = {"networkd": _networkd, "netplan": _netplan, "networkmanager": _networkmanager}


def of_ours() -> str:
    """Shell: the paths of all files that this role has written."""
    return f"ls -d {UNITS}/{PREFIX}* {KEYFILES}/rackwright-*.nmconnection 2>/dev/null | sort"
