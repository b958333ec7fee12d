"""Options of the slurm role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from rackwright.model.interfaces import NamesJobUsers
from rackwright.model.options import RoleOptions
from rackwright.model.strings import GroupName
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole, Workload, WorkloadManager
from rackwright.roles.slurm.backed_up import BacksUpSlurm
from rackwright.roles.slurm.entities import (
    Account,
    Name,
    Partition,
    PartitionName,
    Preemption,
    Qos,
    User,
)
from rackwright.roles.slurm.extra import SlurmExtra
from rackwright.roles.slurm.folders import SlurmFolders
from rackwright.roles.slurm.in_pods import SlurmInPods
from rackwright.roles.slurm.node_sections import Billing, NodeSettings
from rackwright.roles.slurm.on_nodes import Placed, SlurmOnNodes
from rackwright.roles.slurm.power import PowerSaving
from rackwright.roles.slurm.sections import (
    AbsolutePath,
    Accounting,
    Debug,
    HealthCheck,
    Packages,
    PlainPath,
    Priority,
    SchedulerParameter,
    Timeouts,
)
from rackwright.roles.slurm.services import Count, LicenseName, Reservation, ReservationName, StateMount

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node

Private = Literal["accounts", "events", "jobs", "nodes", "partitions", "reservations", "usage", "users"]


class SlurmOptions(BacksUpSlurm, NamesJobUsers, SlurmOnNodes, SlurmInPods, SlurmFolders, Placed, RoleOptions):
    """Slurm with accounting; one section for the whole cluster."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD, NodeRole.WORKER, NodeRole.LOGIN})
    workloads: ClassVar[frozenset[Workload]] = frozenset({Workload.SLURM})
    secrets: ClassVar[tuple[str, ...]] = ("slurmdbd_password",)
    workload_manager: ClassVar[WorkloadManager] = WorkloadManager.SLURM

    packages: Packages = Field(default_factory=Packages)
    uid: int = Field(
        default=64030, ge=1, lt=65534, description="User id of slurm; 64030 is Debian's own for it."
    )
    gid: int = Field(default=64030, ge=1, lt=65534)
    backups: tuple[str, ...] = Field(default=(), description="Heads that take over slurmctld, in this order.")
    state_dir: AbsolutePath = Field(
        default="/var/lib/slurm/slurmctld",
        description="StateSaveLocation; with backups on a filesystem that all share. Stop slurmctld and copy it first.",
    )
    state_mount: StateMount | None = Field(
        default=None,
        description="What holds state_dir and all controllers share, where the site mounts it and not `storage:`. slurmctld "
        "starts only while it is mounted, and stops with it.",
    )
    spool_dir: PlainPath = Field(
        default="/var/spool/slurmd",
        description="SlurmdSpoolDir, local to each node, root's; PMIx's files are in it too, where Slurm replaces no `%n`.",
    )
    slurmctld_port: int = Field(default=6817, ge=1, le=65535)
    slurmd_port: int = Field(default=6818, ge=1, le=65535)
    slurmdbd_port: int = Field(default=6819, ge=1, le=65535)
    srun_port_range: str | None = Field(
        default=None, pattern=r"^\d{4,5}-\d{4,5}$", description="For firewalls."
    )

    private_data: tuple[Private, ...] = Field(
        default=("jobs", "usage"),
        description="PrivateData: categories hidden from other users; operators and coordinators see more "
        "(slurm.conf(5); slurmdbd has the same for sacct and sreport). Slurm's own default hides nothing, so any user "
        "can read the names, commands and folders of all jobs.",
    )

    memory_headroom_percent: float = Field(
        default=5.0,
        ge=0,
        le=50,
        description="RealMemory is this much less than the SKU's memory: firmware, kernel and crash "
        "reservations take a few percent, and a node that finds less than declared is refused "
        "(0.95 is also the default of the OpenHPC Ansible role).",
    )
    memory_headroom_mib: int = Field(default=0, ge=0, description="Taken off RealMemory as well.")
    controller_memory_mib: int | None = Field(
        default=None,
        ge=0,
        description="Taken off RealMemory where a worker runs slurmctld, and half of it where it runs slurmdbd. "
        "None: 2048 MiB, room for some 100,000 job records, at most a sixteenth of the node's memory. The mariadb "
        "role takes its buffer pool off as well.",
    )
    mem_spec_limit_mib: int = Field(
        default=0,
        ge=0,
        description="MemSpecLimit: of RealMemory, kept from jobs and enforced on slurmd by cgroup.",
    )
    core_spec_count: int = Field(default=0, ge=0, description="CoreSpecCount: cores per node kept from jobs.")
    trust_declaration: bool = Field(
        default=False,
        description="Schedule by the declared hardware even where a node finds less (simulated racks).",
    )
    gres_autodetect: Literal["nvidia", "nvml", "off"] | None = Field(
        default=None,
        description="None: nvidia from 24.11 on, before that off with /dev/nvidiaN written out (and Cores= where "
        "the catalogue knows the socket of each GPU); nvml on nodes with `mig`, since the others do not see MIG "
        "instances.",
    )
    topology: Literal["auto", "flat", "tree", "block"] = Field(
        default="auto",
        description="auto: block where each rack is one NVLink domain (NVL72; from Slurm 24.05), tree where every "
        "worker has a declared switch and there are several, else flat. Blocks are racks. Clusters that need both "
        "need a topology.yaml (25.05), which is not written.",
    )
    block_sizes: tuple[int, ...] = Field(default=(), description="Empty: the size of the smallest block.")

    switch_type: Literal["none", "nvidia_imex"] = Field(
        default="none",
        description="nvidia_imex: slurmd makes an IMEX channel for each job, so that its nodes of a rack may share "
        "GPU memory (GB200, GB300; from Slurm 24.05). Change it while no job runs: Slurm may lose all of them.",
    )
    imex_channels: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="imex_channel_count: how many jobs may have a channel at a time. None: Slurm's 2048.",
    )

    node_settings: dict[str, NodeSettings] = Field(
        default_factory=dict,
        description='Features and weights by NodeSet, e.g. {"gpu[001-004]": {features: [nvme], weight: 20}}.',
    )
    partitions: dict[PartitionName, Partition] = Field(
        default_factory=lambda: {"main": Partition(default=True)}, description="By name.", min_length=1
    )
    accounts: dict[Name, Account] = Field(
        default_factory=dict, description="By name. `burnin`, for the acceptance runs of root, always exists."
    )
    users: dict[Name, User] = Field(default_factory=dict, description="By Unix name.")
    qos: dict[Name, Qos] = Field(
        default_factory=dict, description="By name. Slurm's own `normal` always exists."
    )
    prune: bool = Field(
        default=False,
        description="Remove accounts, users, QOS and reservations that are not declared; without it, verify names "
        "them. Finished jobs keep theirs in the history; what running jobs use is refused by Slurm and reported.",
    )
    licenses: dict[LicenseName, Count] = Field(
        default_factory=dict, description='Local licences by name, e.g. {"matlab": 20}; `sbatch -L matlab:1`.'
    )
    reservations: dict[ReservationName, Reservation] = Field(
        default_factory=dict, description="By name. Past ones are left out, and named by verify."
    )
    accounting: Accounting = Field(default_factory=Accounting)
    billing: Billing = Billing()
    priority: Priority = Field(default_factory=Priority)
    preempt: Literal["none", "qos", "partition_prio"] = "none"
    preempt_mode: Preemption = Field(
        default="REQUEUE", description="The cluster's, where `preempt` is not none."
    )
    scheduler_parameters: tuple[SchedulerParameter, ...] = Field(
        default=("bf_continue", "nohold_on_prolog_fail", "salloc_wait_nodes", "sbatch_wait_nodes"),
        description="bf_window is added unless named here: as long as the longest max_time (7 days for UNLIMITED, "
        "at most Slurm's limit of 30), and bf_resolution in proportion, at most 600 s.",
    )
    timeouts: Timeouts = Field(default_factory=Timeouts)
    power_saving: PowerSaving = PowerSaving()
    health_check: HealthCheck = HealthCheck()
    return_to_service: Literal[0, 1, 2] = Field(
        default=1,
        description="1: a node that was only unreachable returns by itself; one that rebooted unasked does not. "
        "A reboot by Slurm returns within power_saving.resume_timeout.",
    )
    max_job_count: int = Field(default=100_000, ge=1_000, le=2_000_000)
    max_array_size: int = Field(default=10_001, ge=1, le=4_000_001)
    mail_program: AbsolutePath = Field(
        default="/bin/true", description="For `--mail-type`; /bin/true sends none. Slurm's own: /bin/mail."
    )
    mpi_default: Literal["pmix", "none"] = "pmix"
    slurmctld_debug: Debug = "info"
    slurmd_debug: Debug = "info"
    log_weeks: int = Field(default=8, ge=1, le=520, description="Rotated logs that are kept, one a week.")

    extra: SlurmExtra = Field(default=SlurmExtra(), description="Extra lines of Slurm's files.")

    private_tmp: bool = Field(
        default=True, description="Own /tmp and /dev/shm for each job (namespace/tmpfs)."
    )
    private_tmp_dir: AbsolutePath = Field(
        default="/var/lib/slurm/job_tmp", description="Where they lie: local, on a disk, fast."
    )
    pam_adopt: bool = Field(
        default=True,
        description="On workers, ssh is for users with a job there, and is counted to it (pam_slurm_adopt).",
    )
    pam_admin_groups: tuple[GroupName, ...] = Field(
        default=("sudo", "wheel", "admin"),
        description="Unix groups that may always log in; so may rackwright's own user.",
    )
    node_fields: ClassVar[frozenset[str]] = frozenset({"pam_adopt", "pam_admin_groups"})
    """What may differ between nodes; all else ends in files that must be the same everywhere."""

    @model_validator(mode="before")
    @classmethod
    def _moved(cls, given: object) -> object:
        if isinstance(given, dict) and "mpi_packages" in given:
            raise mistake(
                "`mpi_packages` is gone from slurm: the role hpc_stack installs MPI.",
                "remove it, and add a section `hpc_stack: {}`",
            )
        return given

    @model_validator(mode="after")
    def _one_default_partition(self) -> SlurmOptions:
        defaults = [name for name, partition in self.partitions.items() if partition.default]
        if len(defaults) != 1:
            named = f"not {' and '.join(defaults)}" if defaults else "but none is"
            raise ValueError(f"exactly one partition must be the default, {named}")
        return self

    def runs_on(self, node: Node) -> bool:
        """On nodes with the workload; where its daemons run in pods, on the primary head alone."""
        return node.holds(*self.applies_to) and self.serves_on(node)

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Mistakes that only show against the resolved cluster."""
        from rackwright.roles.slurm.problems import problems_of

        return problems_of(self, cluster)

    def warnings(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Releases without support, controllers that one server takes down."""
        from rackwright.roles.slurm.support import warnings_of

        return warnings_of(self, cluster)

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """The password of a database outside of the cluster, under the name that the site gave it."""
        name = self.accounting.storage_password
        return () if name in self.secrets else (name,)
