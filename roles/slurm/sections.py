"""Parts of the slurm section: packages, priority, timeouts, accounting, the health check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from rackwright.model.options import Frozen
from rackwright.model.strings import SecretName, not_climbing
from rackwright.roles.slurm.entities import Duration, Tres, TresName

if TYPE_CHECKING:
    from rackwright.model.cluster import Node

Release = Annotated[
    Literal["22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11", "26.05"],
    BeforeValidator(lambda value: f"{value:.2f}" if isinstance(value, float) else value),  # YAML's 24.11
]
AbsolutePath = Annotated[
    str, StringConstraints(pattern=r"^(/[A-Za-z0-9._%-]+)+$"), AfterValidator(not_climbing)
]
PlainPath = Annotated[str, StringConstraints(pattern=r"^(/[A-Za-z0-9._-]+)+$"), AfterValidator(not_climbing)]
"""An absolute path in which Slurm would replace nothing, such as `%n` or `%h`."""
Purge = Annotated[str, StringConstraints(pattern=r"^[1-9]\d{0,3}(hour|day|month)s?$")] | None
"""slurmdbd reads a number with hours, days or months (slurmdbd.conf(5), 22.05 to 26.05, read 2026-11-23)."""
Host = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$")]
SchedulerParameter = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*(=[A-Za-z0-9_.:+*-]+)?$")
]
"""A space would begin the next setting of slurm.conf, and a comma the next parameter."""
Debug = Literal["quiet", "fatal", "error", "info", "verbose", "debug", "debug2", "debug3"]

STATE_UNIT_FILES = (
    "/etc/systemd/system/slurmctld.service.d/rackwright.conf",
    "/etc/systemd/system/rackwright-slurmctld-state.service",
)
"""The guard of slurmctld's state, and what starts slurmctld once that is there."""
STANDBY_UNIT_FILES = (
    "/etc/systemd/system/slurmctld.service.d/rackwright-standby.conf",
    "/etc/systemd/system/rackwright-slurmctld-standby.path",
    "/etc/systemd/system/rackwright-slurmctld-standby.service",
)
"""What restarts a standby slurmctld that lost the cluster's ID."""


class Packages(Frozen):
    """Where Slurm's packages come from."""

    source: Literal["distribution", "schedmd"] = Field(
        default="distribution",
        description="schedmd: the names SchedMD's own packaging gives (slurm-smd-*), from a repository of "
        "the site that the nodes already know. SchedMD advises against distribution packages.",
    )
    release: Release | None = Field(
        default=None, description="Slurm release; decides which settings exist. None: the distribution's own."
    )
    version: str | None = Field(
        default=None,
        pattern=r"^[0-9][A-Za-z0-9.+~:-]*$",
        description="Exact package version to install and keep.",
    )

    @model_validator(mode="after")
    def _release_is_known(self) -> Packages:
        if self.source == "schedmd" and self.release is None:
            raise ValueError("packages from schedmd need `release`, which a distribution does not determine")
        return self


class Priority(Frozen):
    """priority/multifactor with fair tree. Slurm's own weights are all 0, so nothing would count."""

    decay_half_life: Duration = "7-00:00:00"
    max_age: Duration = "7-00:00:00"
    favor_small: bool = False
    weight_age: int = Field(default=1_000, ge=0)
    weight_fairshare: int = Field(default=10_000, ge=0)
    weight_job_size: int = Field(default=1_000, ge=0)
    weight_partition: int = Field(default=1_000, ge=0)
    weight_qos: int = Field(default=10_000, ge=0)
    weight_tres: Tres = Field(default_factory=dict, description='e.g. {"gres/gpu": 3000}.')


class Timeouts(Frozen):
    """Seconds; defaults are Slurm's unless noted."""

    slurmctld: int = Field(default=120, ge=10, le=65533)
    slurmd: int = Field(default=300, ge=10, le=65533, description="A node silent for longer is DOWN.")
    message: int = Field(
        default=30, ge=1, le=100, description="Slurm: 10, too short when 1,000 nodes answer at once."
    )
    kill_wait: int = Field(default=30, ge=1, le=65533, description="Between SIGTERM and SIGKILL.")
    unkillable_step: int = Field(
        default=180,
        ge=30,
        le=65533,
        description="A step that outlives SIGKILL for longer drains its node. Slurm: 60.",
    )
    prolog_epilog: int = Field(
        default=300,
        ge=5,
        le=65533,
        description="Slurm: infinite, so that a hanging prolog blocks its node forever.",
    )
    tcp: int = Field(default=10, ge=2, le=65533, description="To open a connection. Slurm: 2.")

    @model_validator(mode="after")
    def _unkillable_outlasts_messages(self) -> Timeouts:
        if self.unkillable_step < 5 * self.message:
            raise ValueError(
                f"unkillable_step is {self.unkillable_step} s, but Slurm wants at least five times "
                f"message ({5 * self.message} s)"
            )
        return self


class StorageTls(Frozen):
    """slurmdbd's connection to the database by TLS; the files are the site's, readable by the user slurm."""

    ca: AbsolutePath = Field(description="File of the certificate authority (SSL_CA).")
    cert: AbsolutePath | None = Field(default=None, description="The client's certificate (SSL_CERT).")
    key: AbsolutePath | None = Field(default=None, description="Its private key (SSL_KEY).")
    cipher: str | None = Field(
        default=None, pattern=r"^[A-Za-z0-9:_+-]+$", description="Permitted ciphers (SSL_CIPHER)."
    )

    @model_validator(mode="after")
    def _a_pair(self) -> StorageTls:
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key belong together; set both or neither")
        return self

    @property
    def parameters(self) -> str:
        """StorageParameters of slurmdbd.conf."""
        pairs = (("CA", self.ca), ("CERT", self.cert), ("KEY", self.key), ("CIPHER", self.cipher))
        return ",".join(f"SSL_{key}={value}" for key, value in pairs if value is not None)


class Accounting(Frozen):
    """slurmdbd, where it runs, its database, and what it keeps."""

    enforce: tuple[Literal["associations", "limits", "qos", "safe", "nojobs", "nosteps", "wckeys"], ...] = (
        "associations",
        "limits",
        "qos",
        "safe",
    )
    tres: tuple[TresName, ...] = Field(
        default=(),
        description="Tracked beyond cpu, mem, energy, node, billing; gres/gpu and license/NAME are added.",
    )
    store_flags: tuple[Literal["job_comment", "job_env", "job_extra", "job_script"], ...] = ("job_comment",)
    dbd_host: Host | None = Field(
        default=None,
        description="Where slurmdbd runs. None: the primary head. The name of another head: there. A full "
        "name or an address outside of the cluster: the site runs it, with the same MUNGE key.",
    )
    dbd_backup_host: Host | None = Field(
        default=None,
        description="Where a second slurmdbd runs (AccountingStorageBackupHost), named as dbd_host; it needs "
        "the same database.",
    )
    storage_host: Host = Field(
        default="localhost",
        description="Database server as slurmdbd names it: localhost, the head that runs the mariadb role, or "
        "a server outside of the cluster.",
    )
    storage_port: int = Field(default=3306, ge=1, le=65535)
    database: str = Field(default="slurm_acct_db", pattern=r"^[a-z][a-z0-9_]{0,31}$")
    storage_user: str = Field(default="slurm", pattern=r"^[a-z][a-z0-9_]{0,31}$")
    storage_password: SecretName = Field(
        default="slurmdbd_password",
        description="Name of the secret with the database password. For a database outside of the cluster, put its "
        "password into the store under a name such as accounting_db_password.",
    )
    storage_tls: StorageTls | None = Field(default=None, description="None: without TLS.")
    archive_dir: AbsolutePath | None = Field(
        default="/var/lib/slurm/archive",
        description="Where purged records are written, on the node that slurmdbd runs on; `sacctmgr archive load` "
        "reads them. Nothing removes these files. None: purged records are gone.",
    )
    purge_jobs: Purge = Field(default="12months", description="Age, e.g. 12months. None: kept forever.")
    purge_steps: Purge = "3months"
    purge_events: Purge = "12months"
    purge_reservations: Purge = "12months"
    purge_suspends: Purge = "1month"
    purge_transactions: Purge = "12months"
    purge_usage: Purge = "24months"

    @property
    def purges(self) -> dict[str, tuple[str, str]]:
        """Age and the name of its archive setting, by the name of the purge setting."""
        declared = {
            "PurgeEventAfter": (self.purge_events, "ArchiveEvents"),
            "PurgeJobAfter": (self.purge_jobs, "ArchiveJobs"),
            "PurgeResvAfter": (self.purge_reservations, "ArchiveResvs"),
            "PurgeStepAfter": (self.purge_steps, "ArchiveSteps"),
            "PurgeSuspendAfter": (self.purge_suspends, "ArchiveSuspend"),
            "PurgeTXNAfter": (self.purge_transactions, "ArchiveTXN"),
            "PurgeUsageAfter": (self.purge_usage, "ArchiveUsage"),
        }
        return {key: (age, archive) for key, (age, archive) in declared.items() if age is not None}

    @property
    def archived(self) -> dict[str, str]:
        """The archive settings of slurmdbd.conf: what is purged is archived first, unless archive_dir is None."""
        if self.archive_dir is None or not self.purges:
            return {}
        return {"ArchiveDir": self.archive_dir, **{archive: "yes" for _, archive in self.purges.values()}}

    def runs_slurmdbd(self, node: Node) -> bool:
        """Whether slurmdbd, or its backup, runs on a node of the cluster."""
        first = node.primary if self.dbd_host is None else node.name == self.dbd_host
        return first or node.name == self.dbd_backup_host


class HealthCheck(Frozen):
    """What slurmd runs on each node now and then, as root, for at most 60 s."""

    program: AbsolutePath | None = Field(
        default=None, description="None: the one that a role of this cluster offers (health), if any."
    )
    interval_seconds: int = Field(default=300, ge=1, le=65535)
    node_states: tuple[Literal["ANY", "ALLOC", "CYCLE", "IDLE", "MIXED", "NONDRAINED_IDLE"], ...] = Field(
        default=("ANY", "CYCLE"),
        min_length=1,
        description="ANY: also under jobs, and on drained nodes, which come back only so. CYCLE: one after "
        "the other within the interval, not all at once.",
    )
