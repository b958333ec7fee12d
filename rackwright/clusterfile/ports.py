"""Whether the ports of a group's SKU fit the networks that the group has addresses on.

The catalogue has the link layer that a system ships with. NVIDIA's ConnectX VPI ports can be switched to the other
one, so a difference is a warning; it is a mistake if the site declares both the ports and the network.
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
"""Speed for the hint's example if the SKU has no port to take it from."""


@dataclass(frozen=True)
class _Mismatch:
    path: DataPath
    message: str
    hint: str
    impossible: bool


def check_ports(report: Report, groups: list[Group], networks: Mapping[str, Network]) -> None:
    """Report networks that do not fit the ports declared by the site."""
    for mismatch in _mismatches(report, groups, networks):
        if mismatch.impossible and report.clean(mismatch.path):
            report.add(mismatch.path, mismatch.message, mismatch.hint)


def warn_about_ports(report: Report, networks: Mapping[str, Network], groups: list[Group]) -> None:
    """Warn about networks that do not match the SKU's factory ports, and about rails without a port on any node."""
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
        else f"declare a site SKU with the actual ports under `skus`, e.g. {example}"
    )
    if not ports:
        message = (
            f"{network.name} is {kind}, but {sku.name} has no {purpose} port; its links cannot be checked."
        )
        yield _Mismatch(path, message, hint, impossible=False)
        return
    there = " and ".join(sorted(_WORDS[one] for one in {nic.kind for nic in ports}))
    message = f"{network.name} is {kind}, but the {purpose} ports of {sku.name} are {there}"
    if own:
        impossible = network.kind is LinkKind.INFINIBAND
        yield _Mismatch(path, f"{message}.", hint, impossible)
    elif sku.host_varies:
        yield _Mismatch(
            path, f"{message} in the generic SKU; actual ports differ by vendor.", hint, impossible=False
        )
    else:
        yield _Mismatch(path, f"{message} by default.", hint, impossible=False)


def _only_ib(ports: list[Nic]) -> bool:
    return all(nic.kind is LinkKind.INFINIBAND for nic in ports)


def _warn_about_rails(report: Report, groups: list[Group], network: Network) -> None:
    """Warn if a fabric has more rails than any of its nodes; skipped if the ports of some node are unknown."""
    here = [group for group in groups if network.name in group.entry.addresses and group.sku is not None]
    if network.rails < 2 or not here or not all(group.sku is not None and group.sku.rails for group in here):
        return
    widest = max(here, key=lambda group: rails_on(group, network))
    most = rails_on(widest, network)
    if most < network.rails and widest.sku is not None:
        report.warn(
            ("networks", network.name, "rails"),
            f"The network has {network.rails} rails, but no node has ports on more than {most} ({widest.sku.name}).",
            f"set `rails: {most}`, or declare the actual ports in a site SKU under `skus`",
        )
