"""The probe request for a node: only what its declaration names."""

from __future__ import annotations

from typing import Any

from rackwright.health.checks.services import asked_for
from rackwright.health.expected import Expected


def request_of(expected: Expected) -> dict[str, Any]:
    """The part of the probe's request that depends on the declaration."""
    return {
        "services": asked_for(expected),
        "mounts": [mount.target for mount in expected.mounts],
        "dcgm": expected.dcgm,
    }
