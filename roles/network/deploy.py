"""Applies the network role to a node, with a rollback armed on the node itself."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.facts.settings import Answer
from rackwright.model.platforms import Capability, has
from rackwright.operations import guarded
from rackwright.roles.network import shell, texts
from rackwright.roles.network.layout import layout
from rackwright.roles.network.options import NetworkOptions


@deploy("network")
def network(options: NetworkOptions) -> None:
    """Ports with stable names, bonds, VLANs, addresses and routes, all in one change."""
    site = site_of()
    if not has(site.node.platform, Capability.NETWORK_PORTS) or not options.networks:
        return
    wanted = layout(site.cluster, site.node, options)
    files = texts.files(site.node, wanted)
    there: str | None = host.get_fact(Answer, read=texts.of_ours())
    stale = {path: None for path in (there or "").splitlines() if path not in files}
    guarded.change(
        name="Configure the network",
        key=shell.KEY,
        files={**files, **stale},
        activate=shell.activate(site.cluster, site.node, wanted, stale),
        live=(shell.live(wanted), shell.IN_FORCE),
        probe=shell.probe(site.cluster, wanted),
        check=shell.check(site.node),
        seconds=options.confirm_seconds,
        mode=texts.mode(site.node),
        disruptive=True,
    )
