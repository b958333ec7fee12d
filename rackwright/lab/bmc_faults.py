"""Faults of a racked machine's BMC. Its server reads what is recorded; few of them need more than that."""

from __future__ import annotations

from rackwright.errors import LabError
from rackwright.lab.bmc import settings
from rackwright.lab.bmc.settings import LOG_MAX
from rackwright.lab.fault_record import recorded, save
from rackwright.lab.spec import NodeSpec, RackSpec

PREFIX = "bmc:"
SWAP, LOG_FULL = "bmc:swap", "bmc:sel-full"
USAGE = {
    "bmc:hang": "bmc:hang",
    "bmc:error": "bmc:error CODE",
    "bmc:slow": "bmc:slow SECONDS",
    "bmc:password": "bmc:password",
    "bmc:psu": "bmc:psu",
    "bmc:fan": "bmc:fan",
    LOG_FULL: LOG_FULL,
    SWAP: "bmc:swap NODE",
    "bmc:certificate": "bmc:certificate",
    "bmc:off-lies": "bmc:off-lies",
}
"""Fault kind -> how it is written."""
_CODES = ("409", "429", "500", "502", "503")
_SLOWEST = 600.0
_FILLER = "Correctable memory error"


def check(spec: RackSpec, target: NodeSpec, kind: str, args: tuple[str, ...]) -> None:
    """Refuse a fault that this node's BMC cannot have."""
    if target.bmc is None:
        raise LabError(f"node {target.name} has no BMC", hint="`bmc:` of the node in the cluster file")
    if kind == "bmc:error" and args[0] not in _CODES:
        raise LabError(f"bmc:error {args[0]}: not one of {', '.join(_CODES)}", hint="bmc:error 503")
    if kind == "bmc:slow":
        _check_seconds(args[0])
    if kind == SWAP and (args[0] == target.name or spec.node(args[0]).bmc is None):
        others = [one.name for one in spec.racked if one.name != target.name]
        raise LabError(
            f"bmc:swap {args[0]}: not another node with a BMC", hint=f"one of {', '.join(others) or 'none'}"
        )


def _check_seconds(text: str) -> None:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= _SLOWEST:
        raise LabError(f"bmc:slow {text}: not between 0 and {_SLOWEST:g} seconds", hint="bmc:slow 20")


def inject(spec: RackSpec, target: NodeSpec, kind: str, args: tuple[str, ...]) -> None:
    """Do a fault to a BMC, which has power whether its machine has or not; a swap is a fault of both."""
    check(spec, target, kind, args)
    if kind == SWAP:
        other = spec.node(args[0])
        for one in (target, other):
            _swap_back(spec, one)
        save(spec.name, other.name, recorded(spec.name, other.name) | {kind: [target.name]})
    save(spec.name, target.name, recorded(spec.name, target.name) | {kind: list(args)})
    if kind == LOG_FULL:
        with settings.changing(spec.name, target.name) as kept:
            while len(kept.log) < LOG_MAX:
                kept.note(_FILLER, "Memory", "Warning")


def heal(spec: RackSpec, target: NodeSpec) -> None:
    """Take back what a fault did beyond the record of the node, which the caller forgets."""
    _swap_back(spec, target)
    if LOG_FULL in recorded(spec.name, target.name):
        with settings.changing(spec.name, target.name) as kept:
            kept.log = [entry for entry in kept.log if entry.message != _FILLER]


def _swap_back(spec: RackSpec, target: NodeSpec) -> None:
    """Both ends of a swap forget it, the other one first: an interrupted heal can be repeated."""
    partner = recorded(spec.name, target.name).get(SWAP, [])
    for name in (*partner, target.name):
        faults = recorded(spec.name, name)
        if faults.pop(SWAP, None) is not None:
            save(spec.name, name, faults)
