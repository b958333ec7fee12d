"""Discovers the fabric from the nodes and compares it with the declaration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from rackwright.documents.nearest import short, suggest
from rackwright.errors import ExitCode, RackwrightError
from rackwright.fabric.compare import Scope, compare
from rackwright.fabric.ethernet import ask_ethernet
from rackwright.fabric.finding import Finding, Kind
from rackwright.fabric.identify import Found, identify
from rackwright.fabric.infiniband_nodes import ask_infiniband
from rackwright.fabric.places import Places, declared_names
from rackwright.model.cluster import Cluster, Node
from rackwright.model.fabric import Fabric, NodePort
from rackwright.model.platforms import Capability, has, why_lacking
from rackwright.model.selection import pick
from rackwright.model.types import LinkKind, NetworkPurpose
from rackwright.ssh import Pool, RootShell
from rackwright.status import Status

DOCUMENT_VERSION = 1
KIND = "rackwright.fabric.check"
_SHOWN = (Status.FAIL, Status.UNKNOWN, Status.WARN)
_EXIT = {Status.FAIL: ExitCode.CHECK_FAILED, Status.UNKNOWN: ExitCode.UNKNOWN}


@dataclass(frozen=True)
class Checked:
    """One fabric, compared."""

    network: str
    cables: int
    """Declared cables that were compared."""
    intact: int
    """Those of them whose both ends are where they are declared."""
    asked: tuple[str, ...]
    """Nodes that were asked."""
    findings: tuple[Finding, ...]
    found: Found = field(default_factory=Found)

    @property
    def status(self) -> Status:
        """The status that decides."""
        statuses = {finding.status for finding in self.findings}
        order = (Status.FAIL, Status.UNKNOWN, Status.WARN)
        return next((one for one in order if one in statuses), Status.PASS)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "network": self.network,
            "status": self.status.value,
            "cables": self.cables,
            "intact": self.intact,
            "asked": list(self.asked),
            "findings": [finding.to_json() for finding in self.findings],
        }


@dataclass(frozen=True)
class FabricReport:
    """Every fabric that was compared."""

    cluster: str
    fabrics: tuple[Checked, ...]

    @property
    def exit_code(self) -> ExitCode:
        """Exit status: 0 as declared, 3 something differs, 4 something is UNKNOWN."""
        statuses = [one.status for one in self.fabrics]
        return next((_EXIT[one] for one in _EXIT if one in statuses), ExitCode.CLEAN)

    @property
    def verdict(self) -> str:
        """One line."""
        parts = []
        for one in self.fabrics:
            counts = Counter(finding.status for finding in one.findings)
            counted = (
                ", ".join(f"{counts[status]} {status.value}" for status in _SHOWN if counts[status])
                or "as declared"
            )
            parts.append(f"{one.network}: {one.intact} of {one.cables} cables in place, {counted}")
        return "; ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """The versioned document that `--json` prints."""
        return {
            "kind": KIND,
            "version": DOCUMENT_VERSION,
            "cluster": self.cluster,
            "exit_code": int(self.exit_code),
            "fabrics": [one.to_json() for one in self.fabrics],
        }


def fabrics_of(cluster: Cluster, network: str | None) -> tuple[Fabric, ...]:
    """The declared fabrics, or the one of a network. RackwrightError where there is none."""
    if network is None and cluster.fabrics:
        return tuple(cluster.fabrics.values())
    if network is not None and network in cluster.fabrics:
        return (cluster.fabrics[network],)
    if network is not None and network not in cluster.networks:
        raise RackwrightError(
            f"{cluster.path} declares no network {short(network)}.",
            hint=suggest(network, cluster.fabrics or cluster.networks, what="networks"),
        )
    of = "" if network is None else f" of the network {network}"
    raise RackwrightError(f"{cluster.path} declares no cabling{of}.", hint=_how(cluster, network))


def _how(cluster: Cluster, network: str | None) -> str:
    """How to declare cabling, with a network that the file has."""
    if network is not None and cluster.fabrics:
        return f"networks with cabling: {', '.join(cluster.fabrics)}"
    fabrics = [one.name for one in cluster.networks.values() if one.purpose is NetworkPurpose.FABRIC]
    if network is None and not fabrics:
        return "declare a network with `purpose: fabric`, and its cabling under `fabrics` (docs/fabric.md)"
    name = network or fabrics[0]
    if name not in fabrics:
        return f"e.g. `fabrics: {{{name}: {{cables: cables.csv}}}}` (docs/fabric.md)"
    rules = "{spines: 'spine[1-2]', uplinks: {each: 8, leaf_first: 33}}"
    return f"e.g. `fabrics: {{{name}: {rules}}}`, with the leaf of each node under `switch` (docs/fabric.md)"


def check(
    cluster: Cluster,
    *,
    network: str | None = None,
    limit: str | None = None,
    shell: RootShell | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> FabricReport:
    """Discover the declared fabrics and compare them; `limit` is a NodeSet expression of nodes (None: all).

    Never raises because of a node.
    """
    fabrics = fabrics_of(cluster, network)
    chosen = None if limit is None else pick(cluster, limit)
    with ExitStack() as stack:
        reached = shell if shell is not None else stack.enter_context(Pool(cluster))
        checked = tuple(_check(cluster, fabric, chosen, reached, progress) for fabric in fabrics)
    return FabricReport(cluster.name, checked)


def _check(
    cluster: Cluster,
    fabric: Fabric,
    chosen: Iterable[Node] | None,
    shell: RootShell,
    progress: Callable[[str], None],
) -> Checked:
    names = {cable.near.node for cable in fabric.cables if isinstance(cable.near, NodePort)}
    members = [node for node in cluster.nodes if node.name in names]
    wanted = members if chosen is None else [node for node in chosen if node.name in names]
    if not wanted:
        raise RackwrightError(
            f"None of these nodes has a cable of {fabric.network}.", hint="omit --limit, or name other nodes"
        )
    progress(f"discovering {fabric.network} ...")
    declared = declared_names(cluster, fabric.network)
    if fabric.kind is LinkKind.INFINIBAND:
        asked, discovery, more = ask_infiniband(cluster, fabric, members, declared, shell)
    else:
        asked, discovery, more = ask_ethernet(cluster, fabric, wanted, declared, shell)
    scope = _scope(fabric, wanted, whole=chosen is None)
    found = identify(fabric, discovery, more, cluster.by_name)
    readable = replace(scope, unread=discovery.unread_switches)
    findings = (*compare(fabric, found, Places(cluster, fabric), readable), *_out_of_scope(fabric, wanted))
    judged = [cable for cable in fabric.cables if scope.has(cable)]
    intact = sum(found.partner.get(cable.near) == cable.far for cable in judged)
    return Checked(fabric.network, len(judged), intact, asked, findings, found)


def _scope(fabric: Fabric, nodes: Iterable[Node], *, whole: bool) -> Scope:
    without = {node.name for node in nodes if not has(node.platform, Capability.HARDWARE)}
    infiniband = fabric.kind is LinkKind.INFINIBAND
    return Scope(
        nodes=None if whole else frozenset(node.name for node in nodes),
        uplinks=whole and infiniband,
        no_speed=frozenset(without),
    )


def _out_of_scope(fabric: Fabric, nodes: Iterable[Node]) -> list[Finding]:
    """Findings for what is not compared."""
    found = []
    uplinks = sum(cable.uplink for cable in fabric.cables)
    if uplinks and fabric.kind is not LinkKind.INFINIBAND:
        text = f"{uplinks} cables between leaves and spines: only the switches see them, and rackwright queries nodes."
        found.append(Finding(Kind.NOT_COMPARED, text, status=Status.OUT_OF_SCOPE))
    for platform in sorted({node.platform for node in nodes}):
        if (why := why_lacking(platform, Capability.HARDWARE)) is not None and any(
            cable.speed_gbps is not None for cable in fabric.cables
        ):
            found.append(Finding(Kind.NOT_COMPARED, f"speeds: {why}.", status=Status.OUT_OF_SCOPE))
        if why is not None and fabric.max_ber is not None:
            found.append(Finding(Kind.NOT_COMPARED, f"bit error rates: {why}.", status=Status.OUT_OF_SCOPE))
    return found
