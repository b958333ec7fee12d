"""Management port configuration: kernel arguments for the installer's boot, and files for the installed system.

Ports are named by MAC address only. VLAN and bond are as declared; a bond uses LACP. An installer that cannot create a
bond uses its declared port: the switch must accept a single port of the bundle (LACP fallback).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid5

import yaml

from rackwright.install.installers.request import Request
from rackwright.install.port import BOND, Port, networkd
from rackwright.render import render

_NAMESPACE = UUID("4c0a2b9e-71a0-5d3c-9a55-0f6a4de1c3b7")


def port_of(request: Request) -> Port:
    """The declared port; its MAC exists: already checked by `refuse`."""
    install, cluster, node = request.install, request.cluster, request.node
    return Port(
        (str(node.mac), *install.bond),
        install.vlan,
        cluster.management_address(node),
        cluster.management,
        request.nameservers,
    )


def initramfs_arguments(port: Port, host: str) -> list[str]:
    """For initramfs-tools: `ip` of the port that BOOTIF names (its functions, 0.142: _update_ip_param)."""
    gateway = port.network.gateway or ""
    return [
        f"BOOTIF=01-{port.macs[0].replace(':', '-')}",
        f"ip={port.address}::{gateway}:{port.network.cidr.netmask}:{host}::off",
    ]


def dracut_arguments(port: Port, host: str) -> list[str]:
    """dracut.cmdline(7): ports by MAC, then bond, VLAN, address."""
    names = [f"port{number}" for number in range(len(port.macs))]
    found = [f"ifname={name}:{mac}" for name, mac in zip(names, port.macs, strict=True)]
    device = names[0]
    if port.bonded:
        device = BOND
        found.append(f"bond={BOND}:{','.join(names)}:mode=802.3ad,miimon=100,xmit_hash_policy=layer3+4")
    if port.vlan is not None:
        found.append(f"vlan=vlan{port.vlan}:{device}")
        device = f"vlan{port.vlan}"
    mtu = f":{port.mtu}" if port.mtu is not None else ""
    gateway = port.network.gateway or ""
    found.append(f"ip={port.address}::{gateway}:{port.network.cidr.netmask}:{host}:{device}:none{mtu}")
    return [*found, *(f"nameserver={one}" for one in port.nameservers), "rd.neednet=1"]


def netplan(port: Port) -> dict[str, Any]:
    """Netplan's document, for subiquity and for the installed system."""
    settings: dict[str, Any] = {"addresses": [port.cidr], "dhcp4": False, "dhcp6": False, "link-local": []}
    if port.network.gateway is not None:
        settings["routes"] = [{"to": "default", "via": str(port.network.gateway)}]
    if port.nameservers:
        settings["nameservers"] = {"addresses": [str(one) for one in port.nameservers]}
    mtu = {} if port.mtu is None else {"mtu": port.mtu}
    ethernets: dict[str, Any] = {
        f"port{number}": {"match": {"macaddress": mac}, **mtu} | ({"dhcp4": False} if port.bonded else {})
        for number, mac in enumerate(port.macs)
    }
    document: dict[str, Any] = {"version": 2, "ethernets": ethernets}
    if not port.bonded:
        ethernets["port0"] |= settings
        return document
    parameters = {"mode": "802.3ad", "mii-monitor-interval": 100, "transmit-hash-policy": "layer3+4"}
    bond = {"interfaces": list(ethernets), "parameters": parameters, **mtu, **settings}
    return document | {"bonds": {BOND: bond}}


def files(request: Request) -> dict[str, tuple[str, int]]:
    """Path to text and mode of the installed system's network files."""
    port, kind = port_of(request), request.node.os.network
    if kind == "netplan":
        text = yaml.safe_dump({"network": netplan(port)}, sort_keys=False)
        return {"/etc/netplan/00-installer-config.yaml": (text, 0o600)}  # name used by the role network
    if kind == "networkd":
        resolvers = "".join(f"nameserver {one}\n" for one in port.nameservers)
        return {
            "/etc/resolv.conf": (resolvers, 0o644),  # an unreachable resolver would cost 20 s per lookup
        } | {path: (text, 0o644) for path, text in networkd(port).items()}
    return {
        f"/etc/NetworkManager/system-connections/rackwright-install-{name}.nmconnection": (text, 0o600)
        for name, text in _keyfiles(port).items()
    }


def _keyfiles(port: Port) -> dict[str, str]:
    def text(kind: str, name: str, **settings: object) -> str:
        number = uuid5(_NAMESPACE, f"{port.address} {name}")
        return render(
            "install/keyfile.nmconnection.j2", port=port, kind=kind, name=name, uuid=number, **settings
        )

    found = {
        f"port{number}": text(
            "ethernet", f"port{number}", mac=mac.upper(), addressed=not port.bonded and port.vlan is None
        )
        for number, mac in enumerate(port.macs)
    }
    if port.bonded:
        found[BOND] = text("bond", BOND, mac=None, addressed=port.vlan is None)
    if port.vlan is not None:
        parent = BOND if port.bonded else str(uuid5(_NAMESPACE, f"{port.address} port0"))
        found[f"vlan{port.vlan}"] = text("vlan", f"vlan{port.vlan}", mac=None, addressed=True, parent=parent)
    return found
