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

        options = cast("SlurmOptions", self)
        return parts(options, node) if options.manages_nodes else ()

    def stopped_for_restore(self, cluster: Cluster, node: Node) -> tuple[StoppedUnit, ...]:
        """slurmdbd and slurmctld."""
        from rackwright.roles.slurm.backups import units

        options = cast("SlurmOptions", self)
        return units(options, node) if options.manages_nodes else ()

    def overwritten_by_restore(self, cluster: Cluster, node: Node) -> Mapping[str, str]:
        """Jobs in the queue and in the accounting records, and accounts and users that are not declared."""
        from rackwright.roles.slurm.backups import probes

        options = cast("SlurmOptions", self)
        return probes(options, cluster, node) if options.manages_nodes else {}
