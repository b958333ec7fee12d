"""Checks of the fabricmanager role."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.gpu import as_locked, declared_gpus, loaded_driver, needed, smi
from rackwright.claims.units import runs
from rackwright.model.cluster import Node
from rackwright.model.sku import Architecture
from rackwright.roles.fabricmanager.options import FabricmanagerOptions

# GPUs up to Ampere report N/A: only from Hopper on does a GPU register with the fabric.
_REGISTERS = (Architecture.HOPPER, Architecture.BLACKWELL)


def parse_version(text: str) -> str:
    """`Fabric Manager version is : 580.173.02`, in newer ones followed by a line about the build."""
    found = re.search(r"version is\s*:\s*([0-9.]+)", text)
    if found is None:
        raise Undetermined(f"nv-fabricmanager reports no version: {text.strip()[:80]!r}")
    return found[1]


def joined(gpus: list[dict[str, Any]], declared: int) -> str:
    """Every declared GPU reports Completed and Success; Undetermined if one reports nothing."""
    wrong, silent = [], []
    for gpu in gpus:
        state, status = gpu["fabric"]["state"], gpu["fabric"]["status"]
        if state is None or (state == "Completed" and status is None):
            silent.append(str(gpu["index"]))
        elif (state, status) != ("Completed", "Success"):
            wrong.append(f"GPU {gpu['index']}: {state}, {status or 'no status'}")
    if len(gpus) != declared:
        fail(f"nvidia-smi lists {len(gpus)} of {declared} GPUs")
    if wrong:
        fail("; ".join(wrong))
    if silent:
        raise Undetermined(f"nvidia-smi does not report the fabric state of GPU {', '.join(silent)}")
    return f"{declared} GPUs: Completed, Success"


def _one_version(context: CheckContext[FabricmanagerOptions]) -> str:
    daemon = parse_version(context.output("nv-fabricmanager --version"))
    driver = loaded_driver(context)
    if daemon != driver:
        fail(f"Fabric Manager is {daemon} but the loaded driver is {driver}: CUDA fails with error 802")
    return f"both are {driver}"


def _joined(context: CheckContext[FabricmanagerOptions]) -> str:
    return joined(smi(context)["gpus"], declared_gpus(context))


def _registers(node: Node, options: FabricmanagerOptions) -> bool:
    gpus = node.sku.gpus
    return needed(node, options) and gpus is not None and gpus.architecture in _REGISTERS


CHECKS = (
    Check("Fabric Manager is installed as locked and held", as_locked, applies=needed),
    Check(
        "Fabric Manager and the loaded driver have the same version",
        _one_version,
        applies=needed,
    ),
    Check(
        "Fabric Manager is running",
        partial(runs, unit="nvidia-fabricmanager.service"),
        settle_seconds=30,
        applies=needed,
    ),
    Check("every GPU has joined the NVLink fabric", _joined, settle_seconds=120, applies=_registers),
)
