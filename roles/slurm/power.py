"""Part of the slurm section: nodes that reboot, and nodes that Slurm powers off while they are idle."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from rackwright.model.options import Frozen
from rackwright.roles.slurm.sections import AbsolutePath

NodeState = Literal[
    "CLOUD", "DOWN", "DRAIN", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "FAIL", "INVALID_REG", "MAINTENANCE",
    "NOT_RESPONDING", "PLANNED", "RESERVED",
]  # fmt: skip
"""slurm.conf(5) of 23.02 to 26.05."""


class PowerSaving(Frozen):
    """How long a node may take to boot; and, with programs, power saving of idle nodes (off by default)."""

    resume_timeout: int = Field(
        default=1800,
        ge=60,
        le=65533,
        description="ResumeTimeout, seconds, with and without power saving: a node that is resumed or that "
        "`scontrol reboot` reboots (so does `health`) is DOWN when it is not back by then. Slurm: 60, too short "
        "for any server. A GPU server trains memory, tests and starts its fabric: 10 to 15 minutes; DeepOps "
        "has 900, AWS ParallelCluster and Azure's Slurm images 1800.",
    )
    suspend_timeout: int = Field(
        default=300,
        ge=30,
        le=65533,
        description="SuspendTimeout, seconds from the suspend request until the node is certainly off and may "
        "be resumed. Slurm: 30, less than systemd gives a single service to stop (90).",
    )
    suspend_program: AbsolutePath | None = Field(
        default=None,
        description="SuspendProgram, run by slurmctld as user slurm with a hostlist, on every controller; the "
        "site's own (BMC). With resume_program it turns power saving on. Powered-off nodes are unreachable for "
        "rackwright as well.",
    )
    resume_program: AbsolutePath | None = Field(default=None, description="ResumeProgram, likewise.")
    suspend_minutes: int = Field(
        default=60,
        ge=1,
        le=525_600,
        description="SuspendTime in minutes: idle for so long, a node is powered off.",
    )
    suspend_rate: int = Field(
        default=60, ge=0, le=65533, description="Nodes per minute; 0: no limit. 60 is Slurm's default."
    )
    resume_rate: int = Field(
        default=60,
        ge=0,
        le=65533,
        description="Nodes per minute; 0: no limit. Slurm: 300, at which many GPU servers draw their inrush current "
        "within the same minute.",
    )
    exclude_nodes: tuple[str, ...] = Field(
        default=(),
        description="NodeSets that stay on. Workers that are also heads, logins or storage always do.",
    )
    exclude_partitions: tuple[str, ...] = Field(default=(), description="Partitions whose nodes stay on.")
    suspend_exc_states: tuple[NodeState, ...] | None = Field(
        default=None,
        description="States in which nodes stay on. None: DOWN, DRAIN, FAIL, INVALID_REG, MAINTENANCE, "
        "NOT_RESPONDING, so that a broken node can be examined. From Slurm 23.02.",
    )

    @model_validator(mode="after")
    def _both_programs(self) -> PowerSaving:
        if (self.suspend_program is None) != (self.resume_program is None):
            missing = "resume_program" if self.resume_program is None else "suspend_program"
            raise ValueError(f"power saving needs both programs, and {missing} is missing")
        return self

    @property
    def active(self) -> bool:
        """Whether idle nodes are powered off."""
        return self.suspend_program is not None
