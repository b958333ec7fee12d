"""Options of the scratch role."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, field_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import SetsJobEnvironment, WritesUnitFiles
from rackwright.model.options import RoleOptions
from rackwright.model.storage import Filesystem, scratch_of
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole
from rackwright.model.written_folders import written_on
from rackwright.roles.scratch.paths import BIN, JOBS, SWEEP, TIMER, UNITS, USERS

PROJECT_IDS = 67_108_864
"""Projects of jobs: more than Slurm has numbers (slurm.conf(5), MaxJobId: 67,043,328; read 2026-11-26)."""
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Z_][A-Z0-9_]{0,62}$")]
Folder = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,30}$")]
_KEPT_VARIABLES = ("PATH", "HOME", "USER", "SHELL", "IFS", "ENV", "BASH_ENV")


class ScratchOptions(RoleOptions, SetsJobEnvironment, WritesUnitFiles):
    """Local scratch for jobs: a folder each, removed with the job."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.WORKER})

    filesystem: str | None = Field(
        default=None,
        description="Name in `storage:` of a filesystem of kind local and purpose scratch. None: the only one that a "
        "node uses.",
    )
    jobs: bool = Field(
        default=True,
        description="A folder for each job, PATH/jobs/ID, made by the prolog and removed by the epilog.",
    )
    quota_gib: int | None = Field(
        default=None,
        ge=1,
        le=2**20,
        description="GiB limit of a job's folder, enforced by an XFS project quota (mount option prjquota). None: no "
        "limit.",
    )
    first_project_id: int = Field(
        default=2**30,
        ge=1,
        le=2**32 - 1 - PROJECT_IDS,
        description=f"First XFS project for jobs; the {PROJECT_IDS:,} from it on are reserved for them.",
    )
    variables: tuple[Variable, ...] = Field(
        default=("SCRATCH",),
        description="Environment variables set to the job's folder in each task, e.g. [SCRATCH, TMPDIR].",
    )
    users: bool = Field(
        default=False, description="A folder for each user, PATH/users/UID, which outlives jobs."
    )
    shared: tuple[Folder, ...] = Field(
        default=(), description="Folders that every user may write (mode 1777), by name below PATH."
    )
    user_hours: int | None = Field(
        default=None,
        ge=1,
        le=24 * 365,
        description="Hours after which files in `users` and `shared` that were neither changed nor read are removed, if "
        "their user has no job and no process on the node; the filesystem needs `relatime` (at least 48 hours) or "
        "`strictatime` in its `mount_options`. None: they stay.",
    )
    on_failure: Literal["drain", "start"] = Field(
        default="drain",
        description="What happens when a job's folder cannot be made. drain: the node is drained and the job requeued; "
        "start: the job starts without it.",
    )
    remove_seconds: int = Field(
        default=60,
        ge=1,
        le=3600,
        description="How long an epilog may remove files, less than Slurm's `timeouts.prolog_epilog`; a timer removes the "
        "rest.",
    )
    sweep_minutes: int = Field(default=15, ge=1, le=1440, description="How often that timer runs.")
    grace_minutes: int = Field(
        default=10, ge=1, le=1440, description="Age from which a folder without a job is a leftover."
    )
    warn_hours: int = Field(default=1, ge=1, description="Age of leftovers from which verify warns.")
    fail_hours: int = Field(default=24, ge=1, description="Age of leftovers from which verify fails.")

    @field_validator("variables")
    @classmethod
    def _are_free(cls, variables: tuple[str, ...]) -> tuple[str, ...]:
        for name in variables:
            if name in _KEPT_VARIABLES or name.startswith(("LD_", "SLURM", "PMI", "PMIX")):
                raise mistake(f"{name} already has a meaning in a job.", "e.g. SCRATCH or TMPDIR")
        return variables

    @field_validator("shared")
    @classmethod
    def _are_other_folders(cls, shared: tuple[str, ...]) -> tuple[str, ...]:
        for name in shared:
            if name in (JOBS, USERS):
                raise mistake(f"{name} is the folder of {name}, not a shared one.", "e.g. `shared: [tmp]`")
        return shared

    def runs_on(self, node: Node) -> bool:
        """On workers that use such a filesystem."""
        return super().runs_on(node) and bool(scratch_of(node, self.filesystem))

    def filesystem_of(self, node: Node) -> Filesystem:
        """The node's scratch."""
        return scratch_of(node, self.filesystem)[0]

    def waiting_units(self, node: Node) -> tuple[str, ...]:
        """Units of other roles that write below it, which start only while it is mounted."""
        below = f"{self.filesystem_of(node).path}/"
        found = (unit for one in written_on(node) if one.path.startswith(below) for unit in one.units)
        return tuple(dict.fromkeys(found))

    def drop_ins(self, node: Node) -> dict[str, bool]:
        """Path of each drop-in that it may write, and whether the unit writes below scratch."""
        units = dict.fromkeys(unit for one in written_on(node) for unit in one.units)
        waiting = self.waiting_units(node)
        return {f"{UNITS}/{unit}.d/50-rackwright-scratch.conf": unit in waiting for unit in units}

    def unit_files(self, node: Node) -> tuple[str, ...]:
        """Its timer, and drop-ins of units that write below scratch."""
        users = f"{UNITS}/user-runtime-dir@.service.d/50-rackwright-scratch.conf"
        return (f"{UNITS}/{SWEEP}", f"{UNITS}/{TIMER}", users, *self.drop_ins(node))

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """No filesystem or several, quotas that are not on, conflicting folders of other roles."""
        from rackwright.roles.scratch.problems import problems_of

        return problems_of(self, cluster)

    @property
    def reserved(self) -> tuple[str, ...]:
        """Names below the filesystem that belong to this role."""
        return (JOBS, USERS, BIN, *self.shared)

    @property
    def places(self) -> tuple[str, ...]:
        """Folders in which files of users grow old."""
        return (*((USERS,) if self.users else ()), *self.shared)
