"""Checks of the mig role."""

from __future__ import annotations

from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.gpu import declared_gpus, smi
from rackwright.claims.packages import held_at
from rackwright.claims.units import starts_at_boot
from rackwright.model.cluster import Node
from rackwright.roles.mig import partitions
from rackwright.roles.mig.options import MigOptions


def as_declared(gpus: list[dict[str, Any]], node: Node, declared: int) -> str:
    """Every GPU has its MIG mode, with no change pending, and exactly the declared instances."""
    if len(gpus) != declared:
        fail(f"nvidia-smi lists {len(gpus)} of {declared} GPUs")
    wanted, wrong = sorted(partitions.instances(node)), []
    for gpu in gpus:
        name, mig = f"GPU {gpu['index']}", gpu["mig"]
        if mig["current"] is None or mig["pending"] is None:
            raise Undetermined(f"nvidia-smi does not report the MIG mode of {name}")
        if mig["current"] != bool(wanted):
            wrong.append(f"MIG of {name} is {'on' if mig['current'] else 'off'}")
        elif mig["pending"] != bool(wanted):
            wrong.append(f"MIG of {name} changes at its next reset")
        elif sorted(mig["profiles"]) != wanted:
            wrong.append(f"{name} has {' '.join(sorted(mig['profiles'])) or 'no instances'}")
    if wrong:
        fail(f"{'; '.join(wrong)}; declared: {' '.join(wanted) or 'off'}")
    return f"{declared} GPUs: {' '.join(wanted) or 'MIG is off'}"


def _layout(context: CheckContext[MigOptions]) -> str:
    return as_declared(smi(context)["gpus"], context.node, declared_gpus(context))


def _at_boot(context: CheckContext[MigOptions]) -> str:
    return starts_at_boot(context, "rackwright-mig.service", "the instances are gone after a reboot")


def _installed(context: CheckContext[MigOptions]) -> str:
    options = context.options
    return held_at(context, (f"nvidia-mig-manager={options.version}",))


def _by_mig_parted(node: Node, options: MigOptions) -> bool:
    return options.tool == "mig-parted"


CHECKS = (
    Check("every GPU is partitioned as declared", _layout),
    Check("the GPUs are partitioned again at boot", _at_boot),
    Check("mig-parted is installed as declared and held", _installed, applies=_by_mig_parted),
)
