"""Options of the mariadb role."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from rackwright.model.cluster import Node
from rackwright.model.interfaces import AccountingDatabase
from rackwright.model.options import RoleOptions
from rackwright.model.types import NodeRole

_IDENTIFIER = r"^[a-z][a-z0-9_]{0,31}$"


class MariadbOptions(AccountingDatabase, RoleOptions):
    """MariaDB on the primary head for Slurm's accounting; other heads are left alone."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset({NodeRole.HEAD})
    secrets: ClassVar[tuple[str, ...]] = ("slurmdbd_password",)

    database: str = Field(
        default="slurm_acct_db",
        pattern=_IDENTIFIER,
        description="Database of slurmdbd; the slurm role's too.",
    )
    user: str = Field(
        default="slurm", pattern=_IDENTIFIER, description="Database user of slurmdbd, from localhost only."
    )
    buffer_pool_mib: int | None = Field(
        default=None,
        ge=64,
        description="innodb_buffer_pool_size. None: 10 % of the head's memory, but at least 4 GiB where "
        "that is at most a quarter of it (Slurm's accounting guide: 5 to 50 %, 4 GiB or more).",
    )
    lock_wait_timeout_seconds: int = Field(
        default=900,
        ge=50,
        description="innodb_lock_wait_timeout; slurmdbd complains below 900 (accounting guide).",
    )
    max_allowed_packet_mib: int = Field(
        default=64, ge=16, le=1024, description="max_allowed_packet; at least 16."
    )

    def runs_on(self, node: Node) -> bool:
        """On the primary head alone."""
        return node.primary
