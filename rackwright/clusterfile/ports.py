"""Whether the ports of a group's SKU can be on the networks that the group has addresses on.

The catalogue has the link layer a system is sold with. NVIDIA's ConnectX VPI ports can be set to the other one, so
a difference is a warning; it is a mistake where a site declares both the ports and the network itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rackwright.clusterfile.addresses import rails_on
from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.report import Report
from rackwright.documents.document import DataPath
from rackwright.model.cluster import Network
from rackwright.model.sku import Nic, Sku
from rackwright.model.types import LinkKind, NetworkPurpose, Platform

_JUDGED = (NetworkPurpose.FABRIC, NetworkPurpose.STORAGE)
_WORDS = {
    LinkKind.ETHERNET: "Ethernet",
    LinkKind.INFINIBAND: "InfiniBand",
    LinkKind.ROCE: "RoCE",
    LinkKind.SPECTRUM_X: "Spectrum-X",
    LinkKind.IWARP: "iWARP",
    LinkKind.EFA: "EFA",
}
_SPEED_GBPS = 400
"""In the example of a hint where the SKU has no port to take it from."""


@dataclass(frozen=True)
class _Mismatch:
    path: DataPath
    message: str
    hint: str
    impossible: bool


def check_ports(report: Report, groups: list[Group], networks: Mapping[str, Network]) -> None:
    """Note networks that the ports a site declares cannot be on."""
    for mismatch in _mismatches(report, groups, networks):
        if mismatch.impossible and report.clean(mismatch.path):
            report.add(mismatch.path, mismatch.message, mismatch.hint)


def warn_about_ports(report: Report, networks: Mapping[str, Network], groups: list[Group]) -> None:
    """Warn of networks that the ports of a SKU are not sold for, and of rails that no node has a port on."""
    for mismatch in _mismatches(report, groups, networks):
        if not mismatch.impossible:
            report.warn(mismatch.path, mismatch.message, mismatch.hint)
    for network in networks.values():
        _warn_about_rails(report, groups, network)


def _mismatches(report: Report, groups: list[Group], networks: Mapping[str, Network]) -> Iterator[_Mismatch]:
    for group in groups:
        if group.sku is None or group.platform is Platform.CONTAINER:
            continue
        for name in group.entry.addresses:
            if name in networks and networks[name].purpose in _JUDGED:
                yield from _mismatch(report, group, group.sku, networks[name])


def _mismatch(report: Report, group: Group, sku: Sku, network: Network) -> Iterator[_Mismatch]:
    ports = [nic for nic in sku.nics if nic.purpose is network.purpose]
    shared = () if network.purpose is NetworkPurpose.FABRIC else sku.nics
    kinds = {nic.kind for nic in (ports or shared)}
    if network.kind.port in kinds or (network.kind is LinkKind.ETHERNET and not (ports and _only_ib(ports))):
        return
    path: DataPath = (*group.path, "addresses", network.name)
    own = report.document.holds(("skus", sku.name))
    purpose, kind = network.purpose.value, _WORDS[network.kind]
    speed = ports[0].speed_gbps if ports else _SPEED_GBPS
    rail = ", rail: 0" if network.purpose is NetworkPurpose.FABRIC else ""
    example = (
        f"`nics: [{{purpose: {purpose}, kind: {network.kind.port.value}, speed_gbps: {speed}{rail}}}, ...]`"
    )
    hint = (
        f"correct `skus.{sku.name}.nics`, e.g. {example}"
        if own
        else f"declare the nodes as a SKU of the site under `skus`, with the ports they have, e.g. {example}"
    )
    if not ports:
        message = f"{network.name} is {kind}, but {sku.name} has no {purpose} port, so nothing is known of its links."
        yield _Mismatch(path, message, hint, impossible=False)
        return
    there = " and ".join(sorted(_WORDS[one] for one in {nic.kind for nic in ports}))
    message = f"{network.name} is {kind}, but the {purpose} ports of {sku.name} are {there}"
    if own:
        impossible = network.kind is LinkKind.INFINIBAND
        yield _Mismatch(path, f"{message}.", hint, impossible)
    elif sku.host_varies:
        yield _Mismatch(path, f"{message}, as an example: they differ by maker.", hint, impossible=False)
    else:
        yield _Mismatch(path, f"{message} as sold.", hint, impossible=False)


def _only_ib(ports: list[Nic]) -> bool:
    return all(nic.kind is LinkKind.INFINIBAND for nic in ports)


def _warn_about_rails(report: Report, groups: list[Group], network: Network) -> None:
    """Warn where a fabric has more rails than any node on it; not where the ports of some node are not known."""
    here = [group for group in groups if network.name in group.entry.addresses and group.sku is not None]
    if network.rails < 2 or not here or not all(group.sku is not None and group.sku.rails for group in here):
        return
    widest = max(here, key=lambda group: rails_on(group, network))
    most = rails_on(widest, network)
    if most < network.rails and widest.sku is not None:
        report.warn(
            ("networks", network.name, "rails"),
            f"The network has {network.rails} rails, but no node has ports on more than {most} ({widest.sku.name}).",
            f"set `rails: {most}`, or declare the ports the nodes have in a SKU of the site under `skus`",
        )
