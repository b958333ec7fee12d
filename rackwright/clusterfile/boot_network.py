"""The network on which machines without an operating system reach this control node."""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.clusterfile.report import Report
from rackwright.clusterfile.sections import read_section
from rackwright.documents.nearest import short, suggest
from rackwright.documents.yaml_data import Data
from rackwright.model.cluster import Network
from rackwright.model.install import BootNetwork, BootNetworkSection
from rackwright.model.types import NetworkPurpose


def read_boot_network(report: Report, raw: Data, networks: Mapping[str, Network]) -> BootNetwork | None:
    """The section, resolved; None where there is none, or it cannot be read."""
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
            f"There is no network {short(name)}.",
            suggest(name, networks, what="networks"),
        )
        return None
    if section.server not in network.cidr:
        report.add(("boot_network", "server"), f"The address is not in {name} ({network.cidr}).")
    values = dict(section) | {"network": name, "bmc_server": section.bmc_server or section.server}
    return BootNetwork.model_validate(values)
