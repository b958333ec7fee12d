"""Options of the ray_on_slurm role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pydantic import Field

from rackwright.model.cluster import Cluster
from rackwright.model.python_environment import HasPythonEnvironment
from rackwright.model.types import NodeRole, Workload
from rackwright.osfamily.names import names
from rackwright.roles.ray_on_slurm.places import ENVIRONMENTS


class RayOnSlurmOptions(HasPythonEnvironment):
    """Ray for jobs of Slurm: the environment, `ray-job`, and a script for sbatch."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.LOGIN, NodeRole.WORKER})
    environments: ClassVar[str] = ENVIRONMENTS
    own_lock: ClassVar[str] = "ray/requirements.txt.j2"
    workloads: ClassVar[frozenset[Workload]] = frozenset({Workload.SLURM})

    object_store_fraction: float = Field(
        default=0.3,
        gt=0,
        lt=0.9,
        description="Of the job's memory on a node, where the job names no size; Ray's own default is 0.3.",
    )
    reserved_memory_mib: int = Field(
        default=2048,
        ge=256,
        description="Of the job's memory on a node for Ray's own processes, at most a quarter.",
    )
    start_seconds: int = Field(
        default=300,
        ge=10,
        le=86400,
        description="How long a job waits for its nodes to join, unless it names another time.",
    )

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """A lock without Ray; nodes without packages for it, or with another environment in the same place."""
        yield from self.lock_mistakes(cluster, "ray")
        for node in cluster.running("ray_on_slurm", self):
            for role, other in node.options.items():
                if not isinstance(other, HasPythonEnvironment) or other is self:
                    continue
                if (other.lock, other.python, other.keep) != (self.lock, self.python, self.keep):
                    yield (
                        "lock",
                        f"{node.name} has the role {role} too, whose environment is in the same place.",
                        "give both the same `lock`, `python` and `keep`",
                    )
                    return
            if not names(node.family, "python_environments").packages:
                yield (
                    "",
                    f"{node.name} runs {node.os}, for which rackwright knows no packages that make Ray's environment.",
                    None,
                )
                return
