"""Drills of alerts about the health check that each node runs about itself; here it runs at once, not minutes later."""

from __future__ import annotations

from rackwright.drill.choose import gpu_worker, other_worker, worker
from rackwright.drill.model import Drill, LabFault, Shell
from rackwright.health.guard.places import DISABLED, EXPECTED, METRICS, PROGRAM
from rackwright.textfiles import TEXTFILES

_PASSES = f"for pass in 1 2 3; do {PROGRAM}; done"
"""As many as a node has to pass, or not to know, before it counts (the defaults of `roles.health.drain`)."""
_KEPT = f"{EXPECTED}.rackwright-drill"
_FAILS = "rackwright-drill-health"
_LINK = f"{TEXTFILES}/{METRICS.rpartition('/')[2]}"
_OFF, _ON = f"echo drill > {DISABLED}/all", f"rm -f {DISABLED}/all; {PROGRAM}"
_BLIND = Shell(f"mv {EXPECTED} {_KEPT}; {_PASSES}", f"[ ! -e {_KEPT} ] || mv {_KEPT} {EXPECTED}; {_PASSES}")

HEALTH_DRILLS: tuple[Drill, ...] = (
    Drill(
        "HealthCheckFailed",
        "a GPU has an uncorrectable ECC error",
        gpu_worker,
        LabFault("gpu:ecc", then=_PASSES),
        labels={"check": "gpu-ecc-uncorrected"},
    ),
    Drill(
        "HealthWouldDrain",
        "a GPU's link trained to x8",
        gpu_worker,
        LabFault("gpu:pcie-width", then=_PASSES),
        labels={"check": "gpu-pcie-width"},
    ),
    Drill(
        "HealthCheckWarning",
        "a unit of no role has failed",
        worker,
        Shell(
            f"systemd-run --quiet --unit={_FAILS} false; sleep 1; {_PASSES}",
            f"systemctl reset-failed {_FAILS} 2>/dev/null; {_PASSES}",
        ),
        labels={"check": "services-failed"},
    ),
    Drill("HealthUnknown", "the node's expected state is missing", worker, _BLIND),
    Drill("HealthNeedsHuman", "the node's expected state is missing for three passes", worker, _BLIND),
    Drill(
        "HealthCheckNotRunning",
        "the health check is disabled on the node",
        other_worker,
        Shell(_OFF, _ON),
        lane="health",
    ),
    Drill(
        "HealthVerdictMissing",
        "the health check is disabled, and its metrics are missing",
        other_worker,
        Shell(f"{_OFF}; rm -f {_LINK}", _ON),
        lane="health",
    ),
)
