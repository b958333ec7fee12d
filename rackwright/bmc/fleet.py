"""Queries many BMCs in parallel: each succeeds or fails independently, and a hung one delays no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import as_completed
from typing import TypeVar

from rackwright.bmc.interface import BmcClient
from rackwright.bmc.open import connector, open_bmc
from rackwright.errors import BmcError
from rackwright.model.cluster import Cluster, Node
from rackwright.secrets.secret import Secret
from rackwright.secrets.store import store_of
from rackwright.ssh.side_by_side import side_by_side

T = TypeVar("T")
AT_ONCE = 64
WITHIN_SECONDS = 240
"""Time limit per BMC: a slow one takes a second for each of about 40 requests."""


def passwords_of(cluster: Cluster, nodes: Iterable[Node]) -> dict[str, Secret]:
    """BMC password of each node with a BMC; SecretsError if one is missing from the store."""
    store = store_of(cluster)
    return {node.name: store.get(node.bmc.password) for node in nodes if node.bmc is not None}


def ask_all(
    cluster: Cluster,
    nodes: Iterable[Node],
    ask: Callable[[BmcClient], T],
    *,
    at_once: int = AT_ONCE,
    within: float = WITHIN_SECONDS,
    passwords: Mapping[str, Secret] | None = None,
    done: Callable[[str], None] = lambda node: None,
) -> dict[str, T | BmcError]:
    """Each node's answer or error, in node order; nodes without a BMC are skipped.

    + within: seconds for each BMC
    + passwords: by node, if already read
    + done: called with each node's name as soon as its result is available
    """
    chosen = [node for node in nodes if node.bmc is not None]
    known = passwords if passwords is not None else passwords_of(cluster, chosen)

    def one(node: Node) -> T | BmcError:
        try:
            client = open_bmc(node, known[node.name], connector(cluster, node), within=within)
        except BmcError as error:
            return error
        try:
            return ask(client)
        except BmcError as error:
            return error
        finally:
            client.close()

    found: dict[str, T | BmcError] = {}
    with side_by_side(min(at_once, len(chosen))) as threads:
        waiting = {threads.submit(one, node): node.name for node in chosen}
        for future in as_completed(waiting):
            found[waiting[future]] = future.result()
            done(waiting[future])
    return {node.name: found[node.name] for node in chosen}
