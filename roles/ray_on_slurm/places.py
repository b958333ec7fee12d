"""Names and paths of the ray_on_slurm role on nodes."""

from __future__ import annotations

ENVIRONMENTS = "/opt/rackwright/ray"
"""The role ray's too: a node that moves between the two workloads keeps its environment."""
CURRENT = f"{ENVIRONMENTS}/current"
RAY_JOB = "/usr/local/bin/ray-job"
SHARE = "/usr/local/share/rackwright"
EXAMPLE = f"{SHARE}/ray.sbatch"
