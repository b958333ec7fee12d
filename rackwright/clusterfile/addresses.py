"""IP addresses of every node: consecutive in NodeSet order, the same host part in each rail."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address

from rackwright.clusterfile.counted import AddressRule
from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.report import Report
from rackwright.documents.document import DataPath
from rackwright.documents.nearest import short, suggest
from rackwright.model.cluster import Network, NodeAddress
from rackwright.model.types import NetworkPurpose

Addresses = dict[str, tuple[NodeAddress, ...]]
"""Node name to addresses, in file order of the networks, then by rail."""


def assign_addresses(report: Report, groups: list[Group], networks: Mapping[str, Network]) -> Addresses:
    """Addresses of all nodes; reports and skips any that cannot be assigned."""
    found: dict[str, list[NodeAddress]] = {name: [] for group in groups for name in group.names}
    taken: dict[int, tuple[str, DataPath]] = {
        int(network.gateway): ("the gateway", ("networks", name, "gateway"))
        for name, network in networks.items()
        if network.gateway is not None
    }
    for group in groups:
        _check_management(report, group, networks)
        for name, rule in group.entry.addresses.items():
            network = networks.get(name)
            if network is not None:
                _assign(report, group, rule, network, found, taken)
            elif report.clean(("networks", name)):
                report.add(
                    (*group.path, "addresses", name),
                    f"Network {short(name)} does not exist.",
                    suggest(name, networks, what="networks"),
                    key=True,
                )
    return {name: tuple(sorted(entries, key=_order(networks))) for name, entries in found.items()}


def _order(networks: Mapping[str, Network]) -> _Order:
    return _Order({name: index for index, name in enumerate(networks)})


class _Order:
    """Sort key: networks in file order, then rails."""

    def __init__(self, index: dict[str, int]) -> None:
        self._index = index

    def __call__(self, entry: NodeAddress) -> tuple[int, int]:
        return self._index[entry.network], entry.rail


def _check_management(report: Report, group: Group, networks: Mapping[str, Network]) -> None:
    path = (*group.path, "addresses")
    for network in networks.values():
        if network.purpose is not NetworkPurpose.MANAGEMENT:
            continue
        known = all(name in networks for name in group.entry.addresses)
        if known and network.name not in group.entry.addresses and report.clean((*path, network.name)):
            report.add(
                (*path, network.name),
                f"The group has no address on {network.name}, the management network.",
                "add one; rackwright connects to nodes over this network",
                key=True,
            )
        return


def _assign(
    report: Report,
    group: Group,
    rule: AddressRule,
    network: Network,
    found: dict[str, list[NodeAddress]],
    taken: dict[int, tuple[str, DataPath]],
) -> None:
    path = (*group.path, "addresses", network.name)
    if not report.clean(path) or not report.clean(("networks", network.name, "cidr")):
        return
    subnet = network.subnet()
    where = f"{network.name} ({subnet})" if network.rails == 1 else f"rail 0 of {network.name} ({subnet})"
    if rule.first not in subnet:
        report.add(path, f"The address is not in {where}.")
        return
    lowest, highest = int(subnet.network_address), int(subnet.broadcast_address)
    first = int(rule.first)
    if first in (lowest, highest):
        what = "network" if first == lowest else "broadcast"
        report.add(path, f"The address is the {what} address of {where}.")
        return
    room = (highest - 1 - first) // rule.step + 1
    if room < len(group.names):
        report.add(
            path,
            f"The group has {len(group.names)} nodes, but {where} has only {room} addresses left from this one on.",
            "use a lower first address or a larger network",
        )
        return
    size = subnet.num_addresses
    rails = rails_on(group, network)
    for index, name in enumerate(group.names):
        value = first + index * rule.step
        if not _claim(report, taken, value, name, path):
            return
        for rail in range(rails):
            found[name].append(
                NodeAddress(network=network.name, rail=rail, address=IPv4Address(value + rail * size))
            )


def rails_on(group: Group, network: Network) -> int:
    """Rails of a network that the group's nodes are connected to."""
    ports = group.sku.rails if group.sku is not None else 0
    return min(network.rails, ports) if network.rails > 1 and ports else network.rails


def _claim(
    report: Report, taken: dict[int, tuple[str, DataPath]], value: int, name: str, path: DataPath
) -> bool:
    """Whether the address was free; each group reports at most one collision."""
    other, other_path = taken.setdefault(value, (name, path))
    if other == name and other_path == path:
        return True
    line, _ = report.document.position(other_path)
    report.add(path, f"{name} would get {IPv4Address(value)}, already used by {other} (line {line}).")
    return False
