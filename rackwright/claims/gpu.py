"""Claims that several roles of the GPU stack share: locked packages, and the node's GPUs."""

from __future__ import annotations

from typing import Any

from rackwright.claims.check import CheckContext, Undetermined
from rackwright.claims.packages import held_at
from rackwright.health.probe.gpus import parse, parse_mig_list
from rackwright.health.probe.source import Unavailable
from rackwright.lock.for_roles import component, group_of
from rackwright.lock.stack_options import StackOptions
from rackwright.model.cluster import Node
from rackwright.model.options import RoleOptions


def as_locked(context: CheckContext[StackOptions]) -> str:
    """The role's parts of the lock are installed at exactly the locked versions, and held."""
    return held_at(context, component(group_of(context.cluster, context.node), *context.options.parts))


def needed(node: Node, options: StackOptions) -> bool:
    """Whether a node has the hardware for the role's packages; a role makes no claims about other nodes."""
    return options.needed_on(node)


def smi(context: CheckContext[RoleOptions]) -> dict[str, Any]:
    """nvidia-smi's document as the health probe reads it, with the MIG profiles of partitioned GPUs."""
    try:
        found = parse(context.output("timeout 30 nvidia-smi -q -x"))
    except Unavailable as error:
        raise Undetermined(str(error)) from None
    found["gpus"] = [gpu for gpu in found["gpus"] if not _is_display(context.node, gpu["pci_id"])]
    if any(gpu["mig"]["current"] for gpu in found["gpus"]):
        profiles = parse_mig_list(context.output("timeout 30 nvidia-smi -L"))
        for gpu in found["gpus"]:
            gpu["mig"]["profiles"] = profiles.get(gpu["uuid"], [])
    return found


def _is_display(node: Node, pci_id: object) -> bool:
    display = node.sku.gpus.display_pci_id if node.sku.gpus is not None else None
    return display is not None and f"10de:{pci_id}" == display


def loaded_driver(context: CheckContext[RoleOptions]) -> str:
    """Version of the driver that nvidia-smi talks to."""
    version = smi(context)["driver_version"]
    if not isinstance(version, str):
        raise Undetermined("nvidia-smi reports no driver version")
    return version


def declared_gpus(context: CheckContext[RoleOptions]) -> int:
    """How many GPUs the node is declared to have."""
    gpus = context.node.sku.gpus
    if gpus is None:
        raise Undetermined(f"{context.node.sku.name} has no GPUs")
    return gpus.count


def listed_gpus(context: CheckContext[RoleOptions]) -> int:
    """The number of GPUs that NVIDIA's tools list: the declared ones plus the SKU's display GPU, if any."""
    gpus = context.node.sku.gpus
    return declared_gpus(context) + (gpus is not None and gpus.display_pci_id is not None)
