"""Checks of the nccl role: the file, the devices it names, and that nothing overrides it."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, NotInScope, Undetermined, Warned, fail
from rackwright.claims.files import as_rendered
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.roles.nccl import texts
from rackwright.roles.nccl.derived import devices
from rackwright.roles.nccl.options import NcclOptions
from rackwright.roles.nccl.readings import (
    READ_ADDRESSES,
    READ_DEVICES,
    READ_SHADOWS,
    parse_addresses,
    parse_shadows,
    parse_topology,
    whole,
)

_BEHIND_ONE_SWITCH = frozenset({"PIX", "PXB"})
"""At most PCIe bridges between them, and not the CPU's root complex (nvidia-smi topo -m, legend)."""


def _as_rendered(context: CheckContext[NcclOptions]) -> str:
    as_rendered(context, texts.files(context.cluster, context.node, context.options))
    names = context.options.collective_environment(context.cluster, context.node)
    return (
        ", ".join(f"{name}={value}" for name, value in names.items())
        or "nothing to set: NCCL chooses everything"
    )


def _devices_exist(context: CheckContext[NcclOptions]) -> str:
    values = context.options.collective_environment(context.cluster, context.node)
    listed = values.get("NCCL_IB_HCA", "")
    if not listed.startswith("="):
        raise NotInScope(f"NCCL_IB_HCA names no device exactly{f': {listed}' if listed else ''}")
    wanted = [name.partition(":")[0] for name in listed[1:].split(",")]
    there = whole(context.output("sh -c %s", READ_DEVICES))
    if missing := [name for name in wanted if name not in there]:
        fail(f"no RDMA device {', '.join(missing)}; the node has {', '.join(there) or 'none'}")
    return ", ".join(wanted)


def _nothing_shadows(context: CheckContext[NcclOptions]) -> str:
    declared = context.options.collective_environment(context.cluster, context.node)
    found = parse_shadows(context.output("sh -c %s", READ_SHADOWS))
    wins = [
        f"{path} sets {name}={value}" + (f", not {declared[name]}" if name in declared else "")
        for path, name, value in found
        if name == "NCCL_CONF_FILE" or (name in declared and declared[name] != value)
    ]
    if wins:
        fail("; ".join(wins))
    if other := [f"{path} sets {name}={value}" for path, name, value in found if name not in declared]:
        raise Warned(f"{'; '.join(other)}: not declared")
    return "no shared file sets another value"


def _nearest(context: CheckContext[NcclOptions]) -> str:
    node = context.node
    near = {nic.rail: nic.near_gpus for nic in node.sku.nics if nic.rail is not None and nic.near_gpus}
    hcas = [hca for hca in devices(context.cluster, node, context.options) if near.get(hca.rail)]
    if not hcas:
        raise NotInScope(f"the SKU {node.sku.name} does not declare which GPUs are near which rail")
    links = parse_topology(context.output("timeout 60 nvidia-smi topo -m"))
    wrong, unknown = [], []
    for hca in hcas:
        for gpu in near[hca.rail]:
            link = links.get((hca.name, gpu))
            if link is None:
                unknown.append(f"{hca.name} and GPU {gpu}")
            elif link not in _BEHIND_ONE_SWITCH:
                wrong.append(f"{hca.name} and GPU {gpu} are connected by {link}, not by one PCIe switch")
    if wrong:
        fail("; ".join(wrong))
    if unknown:
        raise Undetermined(f"nvidia-smi topo -m does not list {', '.join(unknown)}")
    return ", ".join(f"{hca.name}: GPU {', '.join(map(str, near[hca.rail]))}" for hca in hcas)


def _addresses(context: CheckContext[NcclOptions]) -> str:
    gpus = context.node.sku.gpus
    declared = () if gpus is None else gpus.pci_addresses
    found = parse_addresses(context.output(f"timeout 60 {READ_ADDRESSES}"))
    wrong = [
        f"GPU {index} is at {found.get(index, 'no address')}, not {address}"
        for index, address in enumerate(declared)
        if found.get(index) != address
    ]
    if wrong:
        fail("; ".join(wrong))
    return f"{len(declared)} GPUs"


def _writes_topology(node: Node, options: NcclOptions) -> bool:
    return options.topology_file


def _has_gpus(node: Node, options: NcclOptions) -> bool:
    return node.sku.gpus is not None


CHECKS: tuple[Check, ...] = (
    Check("NCCL's settings match the declared fabric", _as_rendered),
    Check(
        "every RDMA device that NCCL uses exists",
        _devices_exist,
        needs=frozenset({Capability.KERNEL_MODULES}),
        settle_seconds=20,
    ),
    Check("no other file configures NCCL for every user", _nothing_shadows),
    Check(
        "each rail's device is close to the GPUs its SKU declares",
        _nearest,
        needs=frozenset({Capability.HARDWARE, Capability.GPU}),
        applies=_has_gpus,
    ),
    Check(
        "GPUs are at the addresses of NCCL's topology file",
        _addresses,
        needs=frozenset({Capability.GPU}),
        applies=_writes_topology,
    ),
)
