"""Checks of the persistence role."""

from __future__ import annotations

from functools import partial

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.gpu import as_locked, listed_gpus
from rackwright.claims.units import runs
from rackwright.model.platforms import Capability
from rackwright.roles.persistence.options import PersistenceOptions

_DEVICE = frozenset({Capability.KERNEL_MODULES})


def parse_modes(text: str) -> list[bool]:
    """One line per GPU, `Enabled` or `Disabled`."""
    words = text.split()
    if not words or not set(words) <= {"Enabled", "Disabled"}:
        raise Undetermined(f"nvidia-smi does not report persistence modes: {text.strip()[:80]!r}")
    return [word == "Enabled" for word in words]


def _on(context: CheckContext[PersistenceOptions]) -> str:
    modes = parse_modes(
        context.output("timeout 30 nvidia-smi --query-gpu=persistence_mode --format=csv,noheader")
    )
    declared = listed_gpus(context)
    if len(modes) != declared:
        fail(f"nvidia-smi lists {len(modes)} of {declared} declared GPUs")
    if not all(modes):
        fail(f"persistence mode is off on {modes.count(False)} of {declared} GPUs")
    return f"on for {declared} GPUs"


CHECKS = (
    Check("the persistence daemon is installed as locked and held", as_locked),
    Check(
        "the persistence daemon is running",
        partial(runs, unit="nvidia-persistenced.service"),
        needs=_DEVICE,
        settle_seconds=20,
    ),
    Check("persistence mode is on for every GPU", _on, needs=_DEVICE, settle_seconds=20),
)
