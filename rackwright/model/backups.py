"""What a role adds to the backups of a head, and how it is put back.

A role whose state cannot be rebuilt from the cluster file implements `BacksUp`; no role names another one.
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
    """What it is, e.g. `database slurm_acct_db`."""
    dump: str | None = None
    """Shell command whose standard output is the part; it runs as root."""
    load: str | None = None
    """Shell command that puts it back from its standard input, replacing what is there."""
    folder: str | None = None
    """In place of both commands: a folder that is archived, and put back whole."""
    ready: str = "true"
    """Shell command that succeeds where the part can be read and put back, e.g. once its filesystem is mounted."""
    restorable: bool = True
    """False: it is kept for people to read, and never put back on a node."""

    def to_json(self) -> dict[str, Any]:
        """For the programs on the node."""
        return asdict(self)


@dataclass(frozen=True)
class StoppedUnit:
    """A unit that must not run while a backup is put back."""

    unit: str
    starts: int
    """Units of a lower number start first, on all nodes."""
    answers: str = "true"
    """Shell command that succeeds once the unit serves again."""


class BacksUp:
    """Options of a role with state that is backed up."""

    def backup_parts(self, cluster: Cluster, node: Node) -> tuple[BackupPart, ...]:
        """Parts of this node's backups."""
        raise NotImplementedError

    def stopped_for_restore(self, cluster: Cluster, node: Node) -> tuple[StoppedUnit, ...]:
        """Units of this node that stop while a backup is put back on any node of the cluster."""
        return ()

    def overwritten_by_restore(self, cluster: Cluster, node: Node) -> Mapping[str, str]:
        """Shell commands by what they look for, each of which prints a line for what a restore would destroy."""
        return {}


def parts_of(cluster: Cluster, node: Node) -> tuple[BackupPart, ...]:
    """All parts of a node's backups, in the order of its roles."""
    return tuple(
        part
        for options in node.options.values()
        if isinstance(options, BacksUp)
        for part in options.backup_parts(cluster, node)
    )


def stopped_units(cluster: Cluster) -> tuple[tuple[Node, StoppedUnit], ...]:
    """Units of all nodes that stop for a restore, in the order in which they start."""
    found = [
        (node, unit)
        for node in cluster.nodes
        for options in node.options.values()
        if isinstance(options, BacksUp)
        for unit in options.stopped_for_restore(cluster, node)
    ]
    return tuple(sorted(found, key=lambda one: one[1].starts))


def overwritten(cluster: Cluster, node: Node) -> dict[str, str]:
    """Shell commands by what they look for, of all roles of a node."""
    return {
        about: command
        for options in node.options.values()
        if isinstance(options, BacksUp)
        for about, command in options.overwritten_by_restore(cluster, node).items()
    }
