"""Mistakes about the machines that the cluster's services run on: controllers, their state, the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rackwright.model.cluster import Cluster
from rackwright.model.interfaces import AccountingDatabase
from rackwright.model.types import NodeRole

if TYPE_CHECKING:
    from rackwright.roles.slurm.options import SlurmOptions

Problem = tuple[str, str, str | None]
"""(path below the section, a full sentence, a hint)."""


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """A hint that names what was probably meant; None where nothing is near."""
    found = get_close_matches(name, sorted(names), n=1)
    return f"did you mean `{found[0]}`?" if found else None


def controller_problems(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    """Backups that are none, and a state folder that only one controller has."""
    heads = {node.name for node in cluster.holding(NodeRole.HEAD)}
    for index, name in enumerate(options.backups):
        if name == cluster.primary.name:
            yield f"backups[{index}]", f"{name} is the primary head, not a backup of it.", None
        elif name not in heads:
            yield f"backups[{index}]", f"{name} is not a head of this cluster.", nearest_name(name, heads)
    if options.backups and options.state_dir == type(options).model_fields["state_dir"].default:
        yield (
            "state_dir",
            "With backups, state_dir has to be on a file system that all controllers write.",
            "set state_dir to a folder on shared storage",
        )


def database_problems(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    """slurmdbd uses the database and user that the head's database role creates."""
    offered, ours = cluster.primary.offers(AccountingDatabase), options.accounting
    if offered is None or ours.storage_host != "localhost":
        return
    for field, used, created, key in (
        ("database", ours.database, offered.database, "database"),
        ("storage_user", ours.storage_user, offered.user, "user"),
    ):
        if used != created:
            yield (
                f"accounting.{field}",
                f"The mariadb role creates {created}, but slurmdbd would use {used}.",
                f"set {key} in the mariadb section to the same",
            )
