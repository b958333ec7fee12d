"""All drills: for each alert that can really occur in a lab rack, the fault that fires it."""

from __future__ import annotations

from rackwright.drill.gpu_drills import GPU_DRILLS
from rackwright.drill.health_drills import HEALTH_DRILLS
from rackwright.drill.model import Drill
from rackwright.drill.node_drills import NODE_DRILLS
from rackwright.drill.prometheus_drills import PROMETHEUS_DRILLS
from rackwright.drill.slurm_drills import SLURM_DRILLS
from rackwright.drill.upkeep_drills import UPKEEP_DRILLS

DRILLS: tuple[Drill, ...] = (
    *NODE_DRILLS,
    *UPKEEP_DRILLS,
    *SLURM_DRILLS,
    *HEALTH_DRILLS,
    *GPU_DRILLS,
    *PROMETHEUS_DRILLS,
)
