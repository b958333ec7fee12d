"""How registries are reached: as the runtimes of the cluster's nodes declare it."""

from __future__ import annotations

from collections.abc import Callable

from rackwright.bundle.registry import Access
from rackwright.containers import PullingOptions, RegistryAuth
from rackwright.model.cluster import Cluster
from rackwright.secrets.store import store_of


def accesses_of(cluster: Cluster) -> dict[str, Access]:
    """By registry; the first node that declares one decides. A password is read when a registry asks for it."""
    found: dict[str, Access] = {}
    for node in cluster.nodes:
        for options in node.options.values():
            if not isinstance(options, PullingOptions):
                continue
            for name, one in options.registries.items():
                ca = None if one.ca is None else cluster.path.parent / one.ca
                login = None if one.auth is None else _login(cluster, one.auth)
                found.setdefault(name, Access(plain_http=one.plain_http, ca=ca, login=login))
    return found


def _login(cluster: Cluster, auth: RegistryAuth) -> Callable[[], tuple[str, str]]:
    return lambda: (auth.user, store_of(cluster).get(auth.stored_as).reveal())
