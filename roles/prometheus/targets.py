"""What Prometheus reads: for each job the targets that roles declare, with the labels of their nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from rackwright.model.cluster import Cluster, Node
from rackwright.model.monitoring import ExposesMetrics, Probe, Scrape
from rackwright.model.services import IssuesCertificates
from rackwright.model.types import NodeRole

_ROLE_ORDER = (NodeRole.HEAD, NodeRole.WORKER, NodeRole.LOGIN, NodeRole.STORAGE)


def jobs_of(cluster: Cluster) -> dict[str, tuple[tuple[Node, Scrape], ...]]:
    """Who serves each job, by its name, in file order."""
    found: dict[str, list[tuple[Node, Scrape]]] = {}
    for node in cluster.nodes:
        for options in node.options.values():
            if isinstance(options, ExposesMetrics):
                for scrape in options.scrapes(cluster, node):
                    found.setdefault(scrape.job, []).append((node, scrape))
    return {job: tuple(served) for job, served in sorted(found.items())}


def node_labels(node: Node) -> dict[str, str]:
    """The labels of what concerns a node."""
    role = next(role for role in _ROLE_ORDER if role in node.roles)
    labels = {
        "node": node.name,
        "rack": node.rack,
        "leaf": node.switch,
        "sku": node.sku.name,
        "role": role.value,
    }
    return {name: value for name, value in labels.items() if value is not None}


def targets_json(cluster: Cluster, served: tuple[tuple[Node, Scrape], ...]) -> str:
    """The targets of one job as file_sd_config reads them; those with the same labels apart from the address stay apart."""
    entries = [entry for node, scrape in served for entry in _entries(cluster, node, scrape)]
    return json.dumps(entries, indent=1, sort_keys=True) + "\n"


def _entries(cluster: Cluster, node: Node, scrape: Scrape) -> Iterator[Mapping[str, object]]:
    address = f"{cluster.management_address(node)}:{scrape.port}"
    secured = scrape.certified and node.offers(IssuesCertificates) is not None
    how = {
        "__scheme__": "https" if secured else "http",
        "__metrics_path__": scrape.path,
        **{f"__param_{name}": values[0] for name, values in scrape.parameters.items()},
    }
    if scrape.interval_seconds is not None:
        how["__scrape_interval__"] = f"{scrape.interval_seconds}s"
    if scrape.timeout_seconds is not None:
        how["__scrape_timeout__"] = f"{scrape.timeout_seconds}s"
    for probe in scrape.probes:
        labels = {**how, "instance": probe.target, "__param_target": probe.target, **_probed(cluster, probe)}
        yield {"targets": [address], "labels": labels}
    if not scrape.probes:
        own = {} if scrape.names_nodes else node_labels(node)
        yield {"targets": [address], "labels": {**how, "instance": f"{node.name}:{scrape.port}", **own}}


def _probed(cluster: Cluster, probe: Probe) -> Mapping[str, str]:
    """Labels of what is probed; where it belongs to a node, that node's too."""
    about = cluster.by_name.get(probe.labels.get("node", ""))
    return {**(node_labels(about) if about is not None else {}), **probe.labels}
