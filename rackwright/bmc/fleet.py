"""Many BMCs at once: each answers or fails for itself, and one that hangs delays no other."""

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
"""For all that is asked of one BMC: a slow one takes a second for each of some 40 requests."""


def passwords_of(cluster: Cluster, nodes: Iterable[Node]) -> dict[str, Secret]:
    """The BMC password of each node that has a BMC; SecretsError where one is not in the store."""
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
    """What each node's BMC answers, in the order of the nodes, or why it did not; nodes without a BMC are left out.

    + within: seconds for each BMC
    + passwords: by node, where they were read already
    + done: called with each node's name as soon as its answer is there
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
