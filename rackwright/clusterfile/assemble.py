"""Builds the nodes from the parsed sections."""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.catalog import mig
from rackwright.clusterfile.addresses import Addresses
from rackwright.clusterfile.file import ClusterSection
from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.lab_sizes import check_lab_sizes
from rackwright.clusterfile.machines import Declared
from rackwright.clusterfile.placement import Location
from rackwright.clusterfile.ports import check_ports
from rackwright.clusterfile.report import Report
from rackwright.documents.nearest import short, suggest
from rackwright.model.cluster import LabSize, Network, Node
from rackwright.model.options import RoleOptions
from rackwright.model.storage import Filesystem
from rackwright.model.types import NetworkPurpose


def check_fit(report: Report, groups: list[Group], networks: Mapping[str, Network]) -> None:
    """Report contradictions within a group: platform and lab size, ports and rails, MIG."""
    check_lab_sizes(report, groups)
    for group in groups:
        _check_rails(report, group, networks)
        _check_mig(report, group)
    check_ports(report, groups, networks)


def _check_rails(report: Report, group: Group, networks: Mapping[str, Network]) -> None:
    if group.sku is None or group.sku.rails == 0:
        return
    for name in group.entry.addresses:
        network = networks.get(name)
        if network is None or network.purpose is not NetworkPurpose.FABRIC:
            continue
        if network.rails < group.sku.rails and report.clean(("networks", name, "rails")):
            report.add(
                (*group.path, "addresses", name),
                f"{group.sku.name} has ports on {group.sku.rails} rails, but {name} has {network.rails}.",
                f"set `rails: {group.sku.rails}` on the network",
            )


def _check_mig(report: Report, group: Group) -> None:
    path, given = (*group.path, "mig"), group.entry.mig
    if not given or group.sku is None or not report.clean(path):
        return
    if isinstance(given, str):
        layouts = mig.named(group.sku.gpus)
        if given in layouts:
            return
        if mig.profiles_of(group.sku.gpus) is not None:
            report.add(
                path,
                f"{group.sku.name} has no MIG configuration {short(given)}.",
                suggest(given, layouts, what="its MIG configurations"),
            )
            return
    for profile, message, hint in mig.mistakes(group.mig, group.sku.gpus, group.sku.name):
        report.add(path if profile is None else (*path, profile), message, hint)


def assemble_nodes(
    report: Report,
    groups: list[Group],
    addresses: Addresses,
    locations: Mapping[str, Location],
    machines: Mapping[str, Declared],
    options: list[dict[str, RoleOptions]],
    header: ClusterSection | None,
    primary: str | None,
    networks: Mapping[str, Network],
    storage: Mapping[str, Filesystem],
) -> tuple[Node, ...] | None:
    """Every node; None if a group cannot be resolved or no head is primary."""
    check_fit(report, groups, networks)
    whole = all(group.names and group.roles and group.sku and group.os for group in groups)
    if header is None or primary is None or not whole:
        return None
    nodes: dict[str, Node] = {}
    users = {one.name: frozenset(one.nodes) for one in storage.values()}
    for group, group_options in zip(groups, options, strict=True):
        if group.sku is None or group.os is None:
            return None
        lab = None if group.lab is None else LabSize(**dict(group.lab))
        for name in group.names:
            location, machine = locations[name], machines[name]
            nodes[name] = Node(
                name=name,
                fqdn=f"{name}.{header.domain}",
                roles=group.roles,
                primary=name == primary,
                sku=group.sku,
                platform=group.platform,
                os=group.os,
                addresses=addresses[name],
                mac=machine.mac,
                serial=machine.serial,
                bmc=machine.bmc,
                install=machine.install,
                rack=location.rack,
                position=location.position,
                switches=location.switches,
                workload=group.workload,
                lab=lab,
                mig=group.mig,
                filesystems=tuple(one for one in storage.values() if name in users[one.name]),
                served=tuple(one for one in storage.values() if name in one.server_nodes),
            ).with_options(group_options)
    return tuple(nodes.values())
