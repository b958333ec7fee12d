"""The slurm role's side of backups; what it answers is in `backups`, which needs the options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from rackwright.model.backups import BacksUp, BackupPart, StoppedUnit

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.slurm.options import SlurmOptions


class BacksUpSlurm(BacksUp):
    """slurmctld's state; slurmdbd's records are in the database, whose role dumps it."""

    def backup_parts(self, cluster: Cluster, node: Node) -> tuple[BackupPart, ...]:
        """slurmctld's state, and archived accounting records."""
        from rackwright.roles.slurm.backups import parts  # it imports the options

        return parts(cast("SlurmOptions", self), node)

    def stopped_for_restore(self, cluster: Cluster, node: Node) -> tuple[StoppedUnit, ...]:
        """slurmdbd and slurmctld."""
        from rackwright.roles.slurm.backups import units

        return units(cast("SlurmOptions", self), node)

    def overwritten_by_restore(self, cluster: Cluster, node: Node) -> Mapping[str, str]:
        """Jobs in the queue and in the accounting records, and accounts and users that are not declared."""
        from rackwright.roles.slurm.backups import probes

        return probes(cast("SlurmOptions", self), cluster, node)
