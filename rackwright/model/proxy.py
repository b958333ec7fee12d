"""The site's proxy, for the units of daemons that download from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackwright.model.services import SetsProxy

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node


def proxy_variables(cluster: Cluster, node: Node) -> tuple[str, ...]:
    """`NAME=value` for each variable of the declared proxy; empty if no role declares one."""
    proxy = node.offers(SetsProxy)
    if proxy is None:
        return ()
    return tuple(f"{name}={value}" for name, value in proxy.proxy_environment(cluster, node).items())
