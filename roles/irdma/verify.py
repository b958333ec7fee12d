"""Checks of the irdma role: the protocol that each port speaks, by devlink and by its RDMA device."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.units import runs
from rackwright.model.platforms import Capability
from rackwright.roles.irdma import paths, texts
from rackwright.roles.irdma.options import IrdmaOptions, Port

_NODE_TYPES = {"iwarp": "4: RNIC", "roce": "1: CA"}
"""Linux, drivers/infiniband/core/sysfs.c, node_type."""


def _ports(context: CheckContext[IrdmaOptions]) -> tuple[Port, ...]:
    ports = context.options.ports(context.cluster, context.node)
    if not ports:
        raise Undetermined("no port of an E810 is declared for this node: see `roles.rdma.devices`")
    return ports


def _at_boot(context: CheckContext[IrdmaOptions]) -> str:
    as_rendered(context, texts.files(_ports(context)), {paths.PROGRAM: "755"})
    return runs(context, paths.UNIT)


def _protocol(context: CheckContext[IrdmaOptions]) -> str:
    ports = _ports(context)
    found = texts.parse(context.output("sh -c %s", texts.read(ports)))
    if unknown := [port.pci for port in ports if port.pci not in found]:
        raise Undetermined(f"devlink does not show {', '.join(unknown)}")
    wrong = [
        f"{port.hca.name} ({port.pci}) uses {found[port.pci]}, not {port.protocol}"
        for port in ports
        if found[port.pci] != port.protocol
    ]
    if wrong:
        fail("; ".join(wrong))
    return ", ".join(f"{port.hca.name}: {port.protocol}" for port in ports)


def _devices(context: CheckContext[IrdmaOptions]) -> str:
    wrong = []
    for port in _ports(context):
        there = context.output("cat %s", f"/sys/class/infiniband/{port.hca.name}/node_type").strip()
        if there not in _NODE_TYPES.values():
            raise Undetermined(f"{port.hca.name} has the node type {there!r}")
        if there != _NODE_TYPES[port.protocol]:
            wrong.append(f"{port.hca.name} is {there}, not {_NODE_TYPES[port.protocol]}")
    if wrong:
        fail("; ".join(wrong))
    return ", ".join(f"{port.hca.name}: {_NODE_TYPES[port.protocol]}" for port in _ports(context))


_HARDWARE = frozenset({Capability.HARDWARE})
CHECKS: tuple[Check, ...] = (
    Check("the protocol of Intel ports is set at every boot", _at_boot, needs=_HARDWARE),
    Check("each Intel port uses its network's protocol", _protocol, needs=_HARDWARE),
    Check(
        "each Intel RDMA device uses its network's protocol",
        _devices,
        needs=_HARDWARE,
        settle_seconds=20,
    ),
)
