"""Which probes run from where, derived from the cluster file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rackwright.model.cluster import Cluster, Node
from rackwright.model.listening import declared_listeners
from rackwright.model.monitoring import Probe
from rackwright.model.services import NeedsCertificates
from rackwright.roles.blackbox_exporter.extra import Extra

_NAMES = (53, 53)


def probes_of(cluster: Cluster, prober: Node, extra: Mapping[str, Extra]) -> dict[str, tuple[Probe, ...]]:
    """By module of blackbox.yml; the label `probe` is the module."""
    found: dict[str, list[Probe]] = {}
    for node in cluster.nodes:
        for module, target, labels in _of_node(cluster, prober, node):
            about = {"node": node.name, **labels, "probe": module}
            found.setdefault(module, []).append(Probe(target, about))
    for name, one in sorted(extra.items()):
        labels = {"probe": one.probe, "service": name}
        found.setdefault(one.probe, []).append(Probe(one.target, labels))
    return {module: tuple(probes) for module, probes in sorted(found.items())}


def _of_node(cluster: Cluster, prober: Node, node: Node) -> Iterator[tuple[str, str, dict[str, str]]]:
    """(module, target, further labels)."""
    address = cluster.management_address(node)
    inner = {network.name for network in cluster.inner_networks}
    for entry in node.addresses:
        # no network is routed into another one: only what the prober is on itself
        if entry.network in inner and prober.address_on(entry.network, entry.rail) is not None:
            rail = {"rail": str(entry.rail)} if cluster.networks[entry.network].rails > 1 else {}
            yield "icmp", str(entry.address), {"network": entry.network, **rail}
    yield "ssh", f"{address}:{cluster.ssh.port}", {}
    if any(
        one.listener.ports == _NAMES and one.listener.purposes for one in declared_listeners(cluster, node)
    ):
        yield "dns", f"{address}:{_NAMES[0]}", {}
    for certificate in _certificates(cluster, node):
        yield "tls", certificate[1], {"service": certificate[0]}


def _certificates(cluster: Cluster, node: Node) -> Iterator[tuple[str, str]]:
    """(name, where it is served) of the certificates of the site's CA."""
    for options in node.options.values():
        if isinstance(options, NeedsCertificates):
            for certificate in options.certificates(cluster, node):
                for where in certificate.serves:
                    yield certificate.name, where
