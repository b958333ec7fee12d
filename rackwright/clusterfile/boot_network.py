"""The network on which machines without an operating system reach this control node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rackwright.clusterfile.report import Report
from rackwright.clusterfile.sections import read_section
from rackwright.documents.document import DataPath
from rackwright.documents.nearest import short, suggest
from rackwright.documents.yaml_data import Data
from rackwright.model.cluster import Cluster, Network, Node
from rackwright.model.install import BootNetwork, BootNetworkSection
from rackwright.model.types import NetworkPurpose


def read_boot_network(report: Report, raw: Data, networks: Mapping[str, Network]) -> BootNetwork | None:
    """The resolved section; None if it is absent or invalid."""
    if raw is None:
        return None
    section = read_section(report, BootNetworkSection, raw, ("boot_network",))
    if section is None or not report.clean(("networks",)):
        return None
    management = (net.name for net in networks.values() if net.purpose is NetworkPurpose.MANAGEMENT)
    name = section.network or next(management, None)
    if name is None:
        return None
    network = networks.get(name)
    if network is None:
        report.add(
            ("boot_network", "network"),
            f"Network {short(name)} does not exist.",
            suggest(name, networks, what="networks"),
        )
        return None
    if section.server not in network.cidr:
        report.add(("boot_network", "server"), f"The address is not in {name} ({network.cidr}).")
    elif section.server in (network.cidr.network_address, network.cidr.broadcast_address):
        report.add(
            ("boot_network", "server"),
            f"The address is the network or broadcast address of {name} ({network.cidr}).",
        )
    values = dict(section) | {"network": name, "bmc_server": section.bmc_server or section.server}
    return BootNetwork.model_validate(values)


def check_on_boot_network(
    report: Report, cluster: Cluster, installed: Sequence[Node], path: DataPath
) -> None:
    """Report nodes that cannot fetch their image: they would power on and never call back.

    + path: the section that declares their installation
    """
    if cluster.boot_network is None:
        return
    network, server = cluster.boot_network.network, cluster.boot_network.server
    for node in installed:
        address = node.address_on(network)
        if address is None:
            report.add(
                path,
                f"{node.name} has no address on {network}, the boot network, and cannot fetch its image.",
                f"declare one in `addresses`, e.g. `{network}: {server + 1}`, or set another `boot_network.network`",
            )
            return
        if address == server:
            report.add(path, f"{node.name} has the address {server}, which is also `boot_network.server`.")
            return
