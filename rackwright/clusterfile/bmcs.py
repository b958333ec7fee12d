"""BMCs: one address per node on a BMC network, and login settings."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address
from pathlib import Path

from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.machine_list import Machine
from rackwright.clusterfile.machine_sections import BmcSection
from rackwright.clusterfile.report import Report
from rackwright.documents.document import DataPath
from rackwright.model.bmc import Bmc, BmcProtocol, CipherSuite
from rackwright.model.cluster import Network
from rackwright.model.types import NetworkPurpose

USER, PASSWORD, SECONDS = "admin", "bmc_password", 30
CIPHER_SUITE: CipherSuite = 17
_LAST = 2**32


def check_defaults(report: Report, section: BmcSection | None) -> None:
    """Report settings of a single BMC that are declared for all of them."""
    if section is not None and section.address is not None:
        report.add(
            ("defaults", "bmc", "address"),
            "`defaults` cannot set a BMC address: each group has its own.",
            "move it to `bmc:` of the group",
        )
    if section is not None and section.certificate is not None:
        report.add(
            ("defaults", "bmc", "certificate"),
            "`defaults` cannot set a BMC certificate: each BMC has its own.",
            "list the certificates in `machines`, in the column bmc_certificate",
        )


def bmc_addresses(
    report: Report, group: Group, networks: Mapping[str, Network], listed: Mapping[str, Machine]
) -> list[IPv4Address | None]:
    """BMC address of each node, from the machine list or the group's rule; mistakes are reported."""
    section, path = group.entry.bmc, (*group.path, "bmc", "address")
    rule = None if section is None or not report.clean(path) else section.address
    if rule is not None and int(rule.first) + len(group.names) * rule.step > _LAST:
        report.add(path, "The BMC addresses would go beyond 255.255.255.255.")
        rule = None
    found: list[IPv4Address | None] = []
    for index, name in enumerate(group.names):
        by_rule = None if rule is None else IPv4Address(int(rule.first) + index * rule.step)
        found.append(listed.get(name, Machine()).bmc or by_rule)
    outside = _outside(group, found, networks)
    if outside is not None and report.clean(("networks",)):
        _note_outside(report, path if rule is not None else (*group.path, "machines"), outside, networks)
    if section is not None and section.certificate is not None and len(group.names) > 1:
        report.add(
            (*group.path, "bmc", "certificate"),
            "The group has several nodes, but declares one BMC certificate.",
            "list the certificates in `machines`, in the column bmc_certificate",
        )
    return found


def _outside(
    group: Group, found: list[IPv4Address | None], networks: Mapping[str, Network]
) -> tuple[str, IPv4Address] | None:
    """The first node whose BMC address is outside every BMC network."""
    cidrs = [network.cidr for network in networks.values() if network.purpose is NetworkPurpose.BMC]
    for name, address in zip(group.names, found, strict=True):
        if address is not None and not any(
            address in cidr and address not in (cidr.network_address, cidr.broadcast_address)
            for cidr in cidrs
        ):
            return name, address
    return None


def _note_outside(
    report: Report, path: DataPath, outside: tuple[str, IPv4Address], networks: Mapping[str, Network]
) -> None:
    name, address = outside
    known = [
        f"{network.name} ({network.cidr})"
        for network in networks.values()
        if network.purpose is NetworkPurpose.BMC
    ]
    if known:
        report.add(path, f"The BMC of {name} would get {address}, which is not in {' or '.join(known)}.")
    else:
        report.add(
            path,
            "No network has the purpose `bmc`.",
            "e.g. `networks: {bmc: {purpose: bmc, cidr: 10.20.0.0/16}}`",
        )


def resolve_bmc(
    given: BmcSection | None,
    defaults: BmcSection | None,
    address: IPv4Address | None,
    certificate: str | None,
    folder: Path,
) -> Bmc | None:
    """The BMC of one node; None if none is declared."""
    if address is None:
        return None
    values = {
        key: value
        for section in (defaults, given)
        if section is not None
        for key, value in section
        if key != "address" and value is not None
    }
    protocol = values.get("protocol", BmcProtocol.REDFISH)
    ca = values.get("ca")
    return Bmc(
        address=address,
        protocol=protocol,
        port=values.get("port", protocol.port),
        user=values.get("user", USER),
        password=values.get("password", PASSWORD),
        ca=None if ca is None else folder / ca.expanduser(),
        certificate=certificate or values.get("certificate"),
        cipher_suite=values.get("cipher_suite", CIPHER_SUITE),
        timeout_seconds=values.get("timeout_seconds", SECONDS),
    )
