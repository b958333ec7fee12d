"""Where the metrics of a panel come from, and why a cluster cannot have them: a panel without a source is left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from rackwright.dashboards.model import Dashboard, Panel
from rackwright.model.cluster import Cluster, Network, Node
from rackwright.model.interfaces import ChecksNodeHealth
from rackwright.model.monitoring import ExposesMetrics, Scrape
from rackwright.model.platforms import Capability, why_node_lacks
from rackwright.model.storage import FilesystemKind
from rackwright.model.types import NodeRole

_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_ROCE = (
    "np_ecn_marked_roce_packets_received_total|np_cnp_packets_sent_total|rp_cnp_packets_handled_total|"
    "out_of_sequence_packets_received_total|local_ack_timeout_errors_total|packet_sequence_errors_total"
)
Reason = Callable[[Cluster], str | None]


@dataclass(frozen=True)
class Source:
    """Metrics of one origin."""

    names: str
    """Regular expression that matches the beginning of their names."""
    jobs: tuple[str, ...] = ()
    """The scrape jobs that they need; none: Prometheus itself has them."""
    lacking: Reason = lambda cluster: None
    """Why this cluster cannot have them, or None."""
    comes_with: str | None = None
    """The command or role that produces them, shown where data is missing."""

    def why_not(self, cluster: Cluster, of: Node | None = None) -> str | None:
        """Why this cluster, or one node of it, does not have these metrics, or None."""
        missing = [job for job in self.jobs if job not in jobs_of(cluster, of)]
        if missing:
            where = "in this cluster" if of is None else "for this node"
            return f"nothing serves metrics of the job `{missing[0]}` {where}"
        return self.lacking(cluster if of is None else cluster.model_copy(update={"nodes": (of,)}))


def jobs_of(cluster: Cluster, of: Node | None = None) -> frozenset[str]:
    """The scrape jobs that roles of the cluster serve; `of`: those with figures of this node."""
    return frozenset(
        scrape.job
        for node in cluster.nodes
        for options in node.options.values()
        if isinstance(options, ExposesMetrics)
        for scrape in options.scrapes(cluster, node)
        if of is None or _tells_of(scrape, node, of)
    )


def _tells_of(scrape: Scrape, server: Node, of: Node) -> bool:
    """Whether a scrape of one node has figures of another, or of itself."""
    if scrape.probes:
        return any(probe.labels.get("node") == of.name for probe in scrape.probes)
    return scrape.names_nodes or of is server


def _nodes_with(capability: Capability) -> Reason:
    def why(cluster: Cluster) -> str | None:
        reasons = [why_node_lacks(node, capability) for node in cluster.nodes]
        return None if None in reasons else reasons[0]

    return why


def _network(fits: Callable[[Network], bool], what: str) -> Reason:
    def why(cluster: Cluster) -> str | None:
        if not any(fits(network) for network in cluster.networks.values()):
            return f"no {what} network is declared"
        return _nodes_with(Capability.HARDWARE)(cluster)

    return why


def _nfs(nodes: Callable[[Node], bool], what: str) -> Reason:
    def why(cluster: Cluster) -> str | None:
        if not any(nodes(node) for node in cluster.nodes):
            return f"no node {what}"
        return _nodes_with(Capability.NETWORK_FILESYSTEMS)(cluster)

    return why


def _mounts_nfs(node: Node) -> bool:
    return any(one.kind in (FilesystemKind.NFS, FilesystemKind.VAST) for one in node.filesystems)


def _serves_nfs(node: Node) -> bool:
    return any(one.kind is FilesystemKind.NFS for one in node.served)


def _no_gpus(cluster: Cluster) -> str | None:
    return None if any(node.sku.gpus is not None for node in cluster.nodes) else "no node has GPUs"


def _no_health(cluster: Cluster) -> str | None:
    checked = any(node.offers(ChecksNodeHealth) is not None for node in cluster.holding(NodeRole.WORKER))
    return None if checked else "no worker checks its own health"


_RDMA = _network(lambda network: network.kind.rdma, "InfiniBand or RoCE")
SOURCES = (
    Source("gpu:", ("dcgm",)),
    Source("(job|account):", ("slurm", "dcgm")),
    Source("cluster:", ("slurm",)),
    Source("DCGM_", ("dcgm",)),
    Source("slurm_", ("slurm",)),
    Source("ipmi_", ("ipmi",)),
    Source(
        f"node_infiniband_({_ROCE})",
        ("node",),
        _network(lambda network: network.kind.converged, "RoCE"),
        comes_with="node_exporter 1.11 or newer",
    ),
    Source("node_ethtool_received_prio", ("node",), _network(lambda network: network.kind.converged, "RoCE")),
    Source("node_infiniband_", ("node",), _RDMA),
    Source("node_(mountstats_nfs|nfs)_", ("node",), _nfs(_mounts_nfs, "mounts an NFS filesystem")),
    Source("node_nfsd_", ("node",), _nfs(_serves_nfs, "serves an NFS filesystem")),
    Source("node_timex_", ("node",), _nodes_with(Capability.CLOCK)),
    Source("node_(edac|hwmon|rapl)_", ("node",), _nodes_with(Capability.HARDWARE)),
    Source("node_", ("node",)),
    Source("rackwright_declared_gpu", ("node",), _no_gpus),
    Source("rackwright_declared_fabric_", ("node",), _RDMA),
    Source("rackwright_declared_carbon_"),
    Source("rackwright_declared_", ("node",)),
    Source("rackwright_health_", ("node",), _no_health),
    Source("rackwright_drift_", ("node",), comes_with="rackwright drift install"),
    Source("rackwright_burnin_", ("node",), comes_with="rackwright burnin"),
    Source("rackwright_backup_", ("node",), comes_with="the role backup"),
    Source("rackwright_run_", ("node",), comes_with="rackwright apply"),
    Source("ALERTS$"),
    Source("prometheus_"),
    Source("(up|scrape_duration_seconds)$"),
)
"""The first that matches a name counts."""


def sources_of(expression: str) -> tuple[Source, ...]:
    """Origins of the metrics of an expression."""
    return tuple(dict.fromkeys(source for _, source in _named(expression)))


def metrics_of(expression: str) -> tuple[str, ...]:
    """Names of the metrics of an expression, each once, as far as a source has them."""
    return tuple(dict.fromkeys(name for name, _ in _named(expression)))


def _named(expression: str) -> Iterator[tuple[str, Source]]:
    for name in _NAME.findall(_STRINGS.sub("", expression)):
        source = next((one for one in SOURCES if re.match(one.names, name)), None)
        if source is not None:
            yield name, source


def why_left_out(panel: Panel, cluster: Cluster, of: Node | None = None) -> str | None:
    """Why the cluster cannot have the panel's first expression, which the others are compared with; or None."""
    return _why_not(panel.expressions[0].text, cluster, of)


def _why_not(expression: str, cluster: Cluster, of: Node | None) -> str | None:
    reasons = (source.why_not(cluster, of) for source in sources_of(expression))
    return next((reason for reason in reasons if reason is not None), None)


def for_cluster(dashboard: Dashboard, cluster: Cluster, of: Node | None = None) -> Dashboard:
    """The dashboard with the panels, and the expressions in them, that the cluster, or one node of it, can have."""
    rows = []
    for row in dashboard.rows:
        panels = []
        for panel in row.panels:
            if why_left_out(panel, cluster, of) is None:
                kept = tuple(one for one in panel.expressions if _why_not(one.text, cluster, of) is None)
                panels.append(replace(panel, expressions=kept))
        if panels:
            rows.append(replace(row, panels=tuple(panels)))
    return replace(dashboard, rows=tuple(rows))


def left_out(dashboard: Dashboard, cluster: Cluster, of: Node | None = None) -> dict[str, str]:
    """Reasons by title of the panels that the cluster, or one node of it, cannot have."""
    reasons = ((panel.title, why_left_out(panel, cluster, of)) for panel in dashboard.panels)
    return {title: reason for title, reason in reasons if reason is not None}


def comes_with(panel: Panel) -> str | None:
    """The command or role that produces the metrics of a panel, if it may not have run yet."""
    found = (source.comes_with for one in panel.expressions for source in sources_of(one.text))
    return next((text for text in found if text is not None), None)
