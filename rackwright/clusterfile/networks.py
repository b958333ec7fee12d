"""The `networks:` section: each network, and how they fit together."""

from __future__ import annotations

from ipaddress import IPv4Network

from rackwright.clusterfile.file import NetworkSection
from rackwright.clusterfile.report import Report
from rackwright.clusterfile.sections import read_section
from rackwright.documents.yaml_data import Data
from rackwright.model.cluster import Network
from rackwright.model.text import label_mistake
from rackwright.model.types import LinkKind, NetworkPurpose

_ETHERNET_MTU = 9216


def read_networks(report: Report, raw: Data) -> dict[str, Network]:
    """The valid networks; mistakes are reported."""
    networks: dict[str, Network] = {}
    for name, entry in raw.items() if isinstance(raw, dict) else ():
        path = ("networks", name)
        wrong = label_mistake(name)
        if wrong is not None:
            report.add(path, wrong, key=True)
        section = read_section(report, NetworkSection, entry, path)
        if section is not None:
            networks[name] = _resolve(report, name, section)
    _check_overlap(report, networks)
    _check_vlans(report, networks)
    _check_management(report, raw, networks)
    return networks


def _resolve(report: Report, name: str, section: NetworkSection) -> Network:
    path = ("networks", name)
    _check_link(report, path, section)
    gateway = section.gateway
    if gateway is not None and report.clean((*path, "cidr")):
        if gateway not in section.cidr:
            report.add((*path, "gateway"), f"The gateway is not in the network {section.cidr}.")
        elif gateway in (section.cidr.network_address, section.cidr.broadcast_address):
            report.add((*path, "gateway"), "The gateway is the network address or the broadcast address.")
    return Network(
        name=name,
        purpose=section.purpose,
        kind=section.kind,
        cidr=section.cidr,
        mtu=section.mtu,
        vlan=section.vlan,
        gateway=gateway,
        rails=section.rails,
        rail_prefix=_rail_prefix(report, path, section),
    )


def _check_link(report: Report, path: tuple[str, str], section: NetworkSection) -> None:
    if section.kind is LinkKind.INFINIBAND and section.vlan is not None:
        report.add((*path, "vlan"), "InfiniBand has no VLANs.", "use a partition key of the subnet manager")
    if section.kind is not LinkKind.INFINIBAND and section.mtu > _ETHERNET_MTU:
        report.add(
            (*path, "mtu"), f"An Ethernet MTU is at most {_ETHERNET_MTU}.", "e.g. `9000` for jumbo frames"
        )
    if section.purpose is NetworkPurpose.EXTERNAL and section.kind is not LinkKind.ETHERNET:
        report.add(
            (*path, "kind"), f"An external network must be Ethernet, not {section.kind}.", "remove `kind:`"
        )
    if section.rails > 1 and section.purpose is not NetworkPurpose.FABRIC:
        report.add((*path, "rails"), "Only a fabric network can have rails.")
    if section.rails > 1 and section.gateway is not None:
        report.add((*path, "gateway"), "A network with several rails cannot have a gateway.", "remove it")


def _rail_prefix(report: Report, path: tuple[str, str], section: NetworkSection) -> int | None:
    """Prefix length of one rail; the largest subnets that fit unless the file sets it."""
    length = section.cidr.prefixlen
    bits = (section.rails - 1).bit_length()
    if section.rails == 1:
        if section.rail_prefix is not None:
            report.add((*path, "rail_prefix"), "`rail_prefix` needs more than one rail.", "add `rails:`")
        return None
    if section.rail_prefix is None:
        if length + bits > 30:
            report.add((*path, "rails"), f"{section.cidr} is too small for {section.rails} rails.")
        return length + bits
    if section.rail_prefix < length + bits:
        report.add(
            (*path, "rail_prefix"),
            f"{section.cidr} is too small for {section.rails} subnets of /{section.rail_prefix}.",
            f"use at least {length + bits}" if length + bits <= 30 else "enlarge the network",
        )
        return length + bits
    return section.rail_prefix


def _check_overlap(report: Report, networks: dict[str, Network]) -> None:
    seen: list[tuple[str, IPv4Network]] = []
    for name, network in networks.items():
        path = ("networks", name, "cidr")
        for other, cidr in seen:
            if network.cidr.overlaps(cidr) and report.clean(path):
                line, _ = report.document.position(("networks", other, "cidr"))
                report.add(path, f"The network overlaps {other} ({cidr}, line {line}).")
        seen.append((name, network.cidr))


def _check_vlans(report: Report, networks: dict[str, Network]) -> None:
    seen: dict[int, str] = {}
    for name, network in networks.items():
        if network.vlan is None:
            continue
        first = seen.setdefault(network.vlan, name)
        if first != name:
            line, _ = report.document.position(("networks", first, "vlan"))
            report.add(
                ("networks", name, "vlan"), f"The network {first} (line {line}) already uses this VLAN."
            )


def _check_management(report: Report, raw: Data, networks: dict[str, Network]) -> None:
    found = [name for name, net in networks.items() if net.purpose is NetworkPurpose.MANAGEMENT]
    if not found and isinstance(raw, dict) and raw and len(networks) == len(raw):
        report.add(
            ("networks",),
            "No network has the purpose `management`.",
            "set `purpose: management` on the network that rackwright connects over",
        )
    for name in found[1:]:
        report.add(
            ("networks", name, "purpose"),
            f"{found[0]} is already the management network.",
            "set `purpose: management` on one network only",
        )
