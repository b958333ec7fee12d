"""Secrets that the site supplies: a run that lacks one of them is refused before the first connection."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rackwright.errors import SecretsError
from rackwright.model.cluster import Cluster, Node
from rackwright.secrets.store import store_of


def refuse_missing(cluster: Cluster, nodes: Iterable[Node], roles: Collection[str] | None) -> None:
    """SecretsError if the store lacks a password that the roles of a run need and that cannot be generated."""
    needed: dict[str, str] = {}
    for node in nodes:
        for role, options in node.options.items():
            if roles is None or role in roles:
                needed |= dict.fromkeys(options.supplied_secrets, role)
    missing = store_of(cluster).missing(needed) if needed else ()
    if missing:
        name = missing[0]
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise SecretsError(
            f"The secrets store lacks {name}{more}, a password that the role {needed[name]} is given and does not "
            "generate.",
            hint=f"rackwright secrets put {name} {cluster.path.name}",
        )
