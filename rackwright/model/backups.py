"""What a role adds to the backups of a head, and how it is restored.

A role whose state cannot be rebuilt from the cluster file implements `BacksUp`; no role refers to another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node


@dataclass(frozen=True)
class BackupPart:
    """One part of a backup: the output of a command, or a folder."""

    name: str
    """Unique on a node: lower-case letters, digits and dashes."""
    about: str
    """Description for messages, e.g. `database slurm_acct_db`."""
    dump: str | None = None
    """Shell command, run as root, whose standard output is the backup."""
    load: str | None = None
    """Shell command that restores the part from its standard input, replacing what is there."""
    folder: str | None = None
    """Instead of the two commands: a folder that is archived and restored whole."""
    ready: str = "true"
    """Shell command that succeeds when the part can be read and restored, e.g. once its filesystem is mounted."""
    restorable: bool = True
    """False: kept for reference only, never restored to a node."""

    def to_json(self) -> dict[str, Any]:
        """JSON form for the programs on the node."""
        return asdict(self)


@dataclass(frozen=True)
class StoppedUnit:
    """A unit that must not run during a restore."""

    unit: str
    starts: int
    """Units with lower numbers start first, across all nodes."""
    answers: str = "true"
    """Shell command that succeeds once the unit responds again."""


class BacksUp:
    """Options of a role with state that is backed up."""

    def backup_parts(self, cluster: Cluster, node: Node) -> tuple[BackupPart, ...]:
        """Parts of this node's backups."""
        raise NotImplementedError

    def stopped_for_restore(self, cluster: Cluster, node: Node) -> tuple[StoppedUnit, ...]:
        """Units of this node that stop while any node of the cluster is restored."""
        return ()

    def overwritten_by_restore(self, cluster: Cluster, node: Node) -> Mapping[str, str]:
        """Description to shell command, which prints a line for each item that a restore would overwrite."""
        return {}


def parts_of(cluster: Cluster, node: Node) -> tuple[BackupPart, ...]:
    """All parts of a node's backups, in role order."""
    return tuple(
        part
        for options in node.options.values()
        if isinstance(options, BacksUp)
        for part in options.backup_parts(cluster, node)
    )


def stopped_units(cluster: Cluster) -> tuple[tuple[Node, StoppedUnit], ...]:
    """Units of all nodes that stop for a restore, in start order."""
    found = [
        (node, unit)
        for node in cluster.nodes
        for options in node.options.values()
        if isinstance(options, BacksUp)
        for unit in options.stopped_for_restore(cluster, node)
    ]
    return tuple(sorted(found, key=lambda one: one[1].starts))


def overwritten(cluster: Cluster, node: Node) -> dict[str, str]:
    """As `overwritten_by_restore`, for all roles of a node."""
    return {
        about: command
        for options in node.options.values()
        if isinstance(options, BacksUp)
        for about, command in options.overwritten_by_restore(cluster, node).items()
    }
