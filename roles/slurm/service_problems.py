"""Mistakes about the machines that the cluster's services run on: controllers, their state, the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import AccountingDatabase
from rackwright.model.ranges import RangeMistake, expand, fold
from rackwright.model.types import NodeRole
from rackwright.roles.slurm.state_problems import Problem, state_problems

if TYPE_CHECKING:
    from rackwright.roles.slurm.options import SlurmOptions

_LOCALHOST = frozenset({"localhost", "127.0.0.1"})


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
    yield from state_problems(options, cluster)


def database_problems(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    """slurmdbd runs on a head or outside, and reaches the database that the mariadb role makes."""
    yield from _slurmdbd_hosts(options, cluster)
    ours, ran_by = options.accounting, _daemons(options, cluster)
    servers = [node for node in cluster.nodes if node.offers(AccountingDatabase) is not None]
    if not ran_by or (not servers and ours.storage_host not in _LOCALHOST):
        return
    elsewhere = [node.name for node in ran_by if node not in servers]
    if ours.storage_host in _LOCALHOST and servers and elsewhere:
        yield (
            "accounting.storage_host",
            f"slurmdbd runs on {fold(elsewhere)}, but the mariadb role on {servers[0].name}, not on localhost.",
            f"set storage_host to {servers[0].name}, or `node: {elsewhere[0]}` in the mariadb section",
        )
    if ours.storage_host not in _LOCALHOST and not elsewhere and ours.storage_host in cluster.by_name:
        yield (
            "accounting.storage_host",
            f"slurmdbd runs on {ours.storage_host} itself, where MariaDB listens on localhost alone.",
            "leave storage_host at localhost",
        )
        return
    used = {node.name for node in servers} | {str(cluster.management_address(node)) for node in servers}
    if ours.storage_host in _LOCALHOST or ours.storage_host in used:
        yield from _same_database(options, servers)
    elif ours.storage_host in cluster.by_name:
        yield (
            "accounting.storage_host",
            f"No database role runs on {ours.storage_host}.",
            f"set storage_host to {servers[0].name}, which runs mariadb",
        )


def _daemons(options: SlurmOptions, cluster: Cluster) -> list[Node]:
    return [node for node in cluster.holding(NodeRole.HEAD) if options.accounting.runs_slurmdbd(node)]


def _slurmdbd_hosts(options: SlurmOptions, cluster: Cluster) -> Iterator[Problem]:
    heads = {node.name for node in cluster.holding(NodeRole.HEAD)}
    first, second = options.accounting.dbd_host, options.accounting.dbd_backup_host
    for key, name in (("dbd_host", first), ("dbd_backup_host", second)):
        if name is None or name in heads:
            continue
        if name in cluster.by_name:
            yield (
                f"accounting.{key}",
                f"{name} is not a head, so slurmdbd cannot run there.",
                "give it the role `head`, or name another node",
            )
        elif "." not in name:
            yield (
                f"accounting.{key}",
                f"{name} is not declared under nodes.",
                nearest_name(name, heads) or f"for one outside of the cluster: {name}.example.org",
            )
    if second is not None and second == (first or cluster.primary.name):
        yield "accounting.dbd_backup_host", f"slurmdbd runs on {second} already.", None


def _same_database(options: SlurmOptions, servers: list[Node]) -> Iterator[Problem]:
    ours = options.accounting
    for server in servers:
        offered = server.offers(AccountingDatabase)
        if offered is None:
            continue
        for field, used, created, key in (
            ("database", ours.database, offered.database, "database"),
            ("storage_user", ours.storage_user, offered.user, "user"),
            ("storage_password", ours.storage_password, offered.password_secret, None),
            ("storage_port", ours.storage_port, offered.port, None),
        ):
            if used != created:
                yield (
                    f"accounting.{field}",
                    f"The mariadb role creates {created}, but slurmdbd would use {used}.",
                    f"set {key} in the mariadb section to the same" if key else f"leave it at {created}",
                )


def reservation_problems(options: SlurmOptions, cluster: Cluster, workers: set[str]) -> Iterator[Problem]:
    """Nodes of reservations that are not workers."""
    for name, reservation in options.reservations.items():
        path = f"reservations.{name}.nodes"
        if reservation.nodes == "ALL":
            continue
        try:
            names = expand(reservation.nodes)
        except RangeMistake as mistake:
            yield path, mistake.message, mistake.hint
            continue
        unknown = [node for node in names if node not in workers]
        if unknown:
            yield path, f"{fold(unknown)} is not a worker of this cluster.", nearest_name(unknown[0], workers)
