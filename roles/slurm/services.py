"""Parts of the slurm section: the mount of slurmctld's state, licences, reservations."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from rackwright.model.mount_names import unit_name
from rackwright.model.options import Frozen
from rackwright.model.strings import Identifier

# What systemd and findmnt take as it is.
_MountPath = Annotated[str, StringConstraints(pattern=r"^(/[A-Za-z0-9_][A-Za-z0-9._-]*)+$")]
LicenseName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,39}$")]
Count = Annotated[int, Field(ge=1, le=2_000_000)]
ReservationName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$")]
_Moment = Annotated[
    str,
    StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:00)?$"),
    BeforeValidator(  # YAML's own timestamps
        lambda value: value.isoformat() if isinstance(value, datetime | date) else value
    ),
]
_Length = Annotated[str, StringConstraints(pattern=r"^(\d+-\d{2}:\d{2}:00|\d{1,3}:\d{2}:00)$")]

SHARED_FILE_SYSTEMS = frozenset(
    {
        *("afs", "beegfs", "ceph", "gfs2", "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "ocfs2", "orangefs"),
        *("panfs", "pvfs2", "wekafs", "fuse.ceph", "fuse.ceph-fuse", "fuse.glusterfs", "fuse.juicefs"),
        *("fuse.mfs", "fuse.quobyte"),
    }
)
"""File systems that several nodes write at once, as findmnt names them."""
RECURRING = frozenset({"HOURLY", "DAILY", "WEEKDAY", "WEEKEND", "WEEKLY"})


class StateMount(Frozen):
    """The file system of slurmctld's state. The site mounts it; slurmctld does not start without it."""

    path: _MountPath = Field(description="Mount point, the same on every controller, e.g. /shared.")
    source: str = Field(
        pattern=r"^[^\s|]+$",
        max_length=400,
        description="What is mounted, as `findmnt -o SOURCE` prints it, e.g. nfs1:/export/slurm.",
    )
    fstype: str = Field(
        pattern=r"^[a-z0-9.-]+$",
        max_length=40,
        description="Type, as `findmnt -o FSTYPE` prints it, e.g. nfs4.",
    )

    @property
    def unit(self) -> str:
        """The mount's unit, as systemd-escape --path names it."""
        return unit_name(self.path)


class Reservation(Frozen):
    """One advanced reservation of slurmctld; times are in the time zone of the controllers."""

    nodes: str = Field(min_length=1, description="NodeSet of workers, or ALL.")
    start: _Moment = Field(description="e.g. 2026-12-01T08:00. With a recurring flag: of the first one.")
    end: _Moment | None = Field(default=None, description="As start; `end` or `duration`.")
    duration: _Length | None = Field(default=None, description="`D-HH:MM:00` or `HH:MM:00`.")
    users: tuple[Identifier, ...] = Field(default=(), description="Who may use it. Users, accounts, or both.")
    accounts: tuple[Identifier, ...] = ()
    flags: tuple[
        Literal[
            "DAILY", "FLEX", "HOURLY", "IGNORE_JOBS", "MAGNETIC", "MAINT", "OVERLAP", "SPEC_NODES",
            "WEEKDAY", "WEEKEND", "WEEKLY",
        ],
        ...,
    ] = Field(
        default=(),
        description="Slurm's flags. MAINT: for maintenance; IGNORE_JOBS: although jobs run; at most one of "
        "HOURLY, DAILY, WEEKDAY, WEEKEND, WEEKLY repeats it.",
    )  # fmt: skip

    @model_validator(mode="after")
    def _whole(self) -> Reservation:
        if (self.end is None) == (self.duration is None):
            raise ValueError("set either end or duration")
        if not self.users and not self.accounts:
            raise ValueError("set users or accounts: Slurm takes no reservation that has neither")
        if len(RECURRING & set(self.flags)) > 1:
            raise ValueError(
                f"at most one flag may repeat it, not {' and '.join(sorted(RECURRING & set(self.flags)))}"
            )
        try:
            first, last = datetime.fromisoformat(self.start), datetime.fromisoformat(self.end or self.start)
        except ValueError as error:
            raise ValueError(f"start or end is not a date that exists: {error}") from None
        if self.end is not None and last <= first:
            raise ValueError(f"end is {self.end}, not after start, {self.start}")
        return self
