"""Partitions, QOS, accounts and users in the cluster file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from rackwright.model.options import Frozen
from rackwright.model.strings import GroupName
from rackwright.roles.slurm.durations import EXAMPLE, PATTERN, duration

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,39}$")]
"""sacctmgr folds names to lower case, so another spelling would never compare equal."""
PartitionName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$")]
TresName = Annotated[str, StringConstraints(pattern=r"^[a-z]+(/[A-Za-z0-9:_.-]+)?$")]
Tres = dict[TresName, Annotated[int, Field(ge=0)]]
BillingTres = Annotated[str, StringConstraints(pattern=r"^[A-Za-z]+(/[A-Za-z0-9:_.-]+)?$")]
"""slurm.conf(5) writes them `CPU`, `Mem` and `GRES/gpu` here."""
Duration = Annotated[
    str,
    BeforeValidator(duration),
    Field(json_schema_extra={"pattern": PATTERN, "examples": [EXAMPLE]}),
]
"""Slurm's own spelling, `D-HH:MM:SS` or `HH:MM:SS`, or UNLIMITED; `14d`, `12h` and the like are read too."""
Words = Annotated[str, StringConstraints(pattern=r'^[^|"\\\n]*$', max_length=200)]
"""What sacctmgr keeps as text; its output is cut at `|`."""
Preemption = Literal["OFF", "CANCEL", "REQUEUE", "SUSPEND"]


class Partition(Frozen):
    """One partition. Memory and CPU defaults follow the nodes' SKUs."""

    nodes: str | None = Field(default=None, description="NodeSet of workers. None: all workers.")
    default: bool = Field(default=False, description="Jobs that name no partition run here.")
    state: Literal["UP", "DOWN", "DRAIN", "INACTIVE"] = "UP"
    max_time: Duration = Field(default="UNLIMITED", description="Longest job, `D-HH:MM:SS` or UNLIMITED.")
    default_time: Duration | None = Field(
        default=None, description="Time limit of jobs that name none; None: max_time."
    )
    min_nodes: int | None = Field(default=None, ge=0)
    max_nodes: int | None = Field(default=None, ge=1)
    priority_tier: int = Field(
        default=1, ge=1, le=65533, description="Higher tiers are scheduled (and preempt) first."
    )
    priority_job_factor: int = Field(default=1, ge=1, le=65533)
    preempt_mode: Preemption | None = Field(default=None, description="None: the cluster's preemption mode.")
    grace_seconds: int = Field(
        default=0, ge=0, description="Time between the preemption signal and its execution."
    )
    oversubscribe: Literal["NO", "EXCLUSIVE", "YES", "FORCE"] = Field(
        default="NO", description="EXCLUSIVE gives whole nodes to a job."
    )
    def_mem_per_cpu_mib: int | None = Field(
        default=None,
        ge=1,
        description="None: a CPU's share of the smallest node; not set where nodes have GPUs.",
    )
    def_mem_per_gpu_mib: int | None = Field(
        default=None, ge=1, description="None: a GPU's share of the smallest node."
    )
    def_cpu_per_gpu: int | None = Field(
        default=None, ge=1, description="None: a GPU's share of the smallest node."
    )
    max_mem_per_cpu_mib: int | None = Field(default=None, ge=1)
    max_cpus_per_node: int | None = Field(default=None, ge=1)
    qos: Name | None = Field(default=None, description="Partition QOS, whose limits apply to all its jobs.")
    allow_qos: tuple[Name, ...] = ()
    allow_accounts: tuple[Name, ...] = ()
    deny_accounts: tuple[Name, ...] = ()
    allow_groups: tuple[GroupName, ...] = Field(default=(), description="Unix groups.")
    hidden: bool = False
    root_only: bool = False
    tres_billing_weights: dict[BillingTres, float] = Field(
        default_factory=dict, description='e.g. {"CPU": 1.0, "Mem": 0.25, "GRES/gpu": 16.0}; memory per GiB.'
    )

    @model_validator(mode="after")
    def _one_memory_default(self) -> Partition:
        if self.def_mem_per_cpu_mib is not None and self.def_mem_per_gpu_mib is not None:
            raise ValueError(
                "def_mem_per_cpu_mib and def_mem_per_gpu_mib exclude each other in Slurm; set one of them"
            )
        if self.allow_accounts and self.deny_accounts:
            raise ValueError("deny_accounts is ignored where allow_accounts is set; set one of them")
        return self


class Limits(Frozen):
    """Limits of an association; what is not set is not limited here."""

    grp_tres: Tres = Field(default_factory=dict, description='All jobs together, e.g. {"gres/gpu": 64}.')
    grp_jobs: int | None = Field(default=None, ge=0)
    grp_submit_jobs: int | None = Field(default=None, ge=0)
    max_tres_per_job: Tres = Field(default_factory=dict)
    max_jobs: int | None = Field(default=None, ge=0)
    max_submit_jobs: int | None = Field(default=None, ge=0)
    max_wall: Duration | None = Field(default=None, description="Longest job, `D-HH:MM:SS`.")


class Account(Frozen):
    """One account of the tree below Slurm's built-in `root`."""

    parent: Name = "root"
    description: Words | None = Field(default=None, description="None: the account's name.")
    organization: Words = "root"
    fairshare: int = Field(default=1, ge=1)
    limits: Limits = Field(default_factory=Limits)
    qos: tuple[Name, ...] = Field(default=(), description="QOS its jobs may use. Empty: what the parent may.")
    default_qos: Name | None = None


class User(Frozen):
    """One user; the Unix user itself is the access role's."""

    default_account: Name
    accounts: tuple[Name, ...] = Field(default=(), description="Further accounts the user may charge.")
    admin: Literal["none", "operator", "administrator"] = "none"
    fairshare: int = Field(default=1, ge=1)
    limits: Limits = Field(default_factory=Limits)


class Qos(Frozen):
    """One quality of service."""

    description: Words | None = Field(default=None, description="None: the QOS's name.")
    priority: int = Field(default=0, ge=0)
    preempt: tuple[Name, ...] = Field(default=(), description="QOS whose jobs this one may preempt.")
    preempt_mode: Literal["cluster", "cancel", "requeue"] = "cluster"
    grace_seconds: int = Field(default=0, ge=0)
    flags: tuple[
        Literal[
            "DenyOnLimit",
            "EnforceUsageThreshold",
            "NoDecay",
            "NoReserve",
            "OverPartQOS",
            "PartitionMaxNodes",
            "PartitionMinNodes",
            "PartitionTimeLimit",
            "RequiresReservation",
            "UsageFactorSafe",
        ],
        ...,
    ] = ()
    usage_factor: float = Field(default=1.0, ge=0)
    grp_tres: Tres = Field(default_factory=dict)
    grp_jobs: int | None = Field(default=None, ge=0)
    max_wall: Duration | None = None
    max_tres_per_job: Tres = Field(default_factory=dict)
    max_tres_per_user: Tres = Field(default_factory=dict)
    max_tres_per_account: Tres = Field(default_factory=dict)
    max_jobs_per_user: int | None = Field(default=None, ge=0)
    max_submit_jobs_per_user: int | None = Field(default=None, ge=0)
