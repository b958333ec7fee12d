"""Runs the search for a culprit: its runs as jobs, the port counters around them, and the findings as text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackwright.burnin.counters import NodeState, read_counters
from rackwright.burnin.culprit import RUNS_MAX, SLOW_FRACTION, Search
from rackwright.burnin.evidence import Declared, evidence, from_log, joined
from rackwright.burnin.finding import Finding
from rackwright.burnin.floors import Floor
from rackwright.burnin.measuring import Measurer, trouble_of
from rackwright.burnin.on_each import by_node
from rackwright.burnin.pair_stage import PAIR_LARGEST
from rackwright.burnin.per_node import FLEET_FRACTION
from rackwright.burnin.port_output import parse_perftest
from rackwright.burnin.ports import no_ports, port_step
from rackwright.burnin.rails import Rail, cable_of, leaves_of, rails_of, units_of
from rackwright.burnin.readiness import not_ready
from rackwright.burnin.runs import Culprit, Found, Reading, Run
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.model.types import NetworkPurpose
from rackwright.ssh import RootShell
from rackwright.ssh.side_by_side import side_by_side
from rackwright.status import Status

RUNS_AT_ONCE = 16
CABLES_NAMED = 8


@dataclass(frozen=True)
class Named:
    """A culprit with its place in the declared cabling and the evidence for its cause."""

    culprit: Culprit
    cables: tuple[str, ...]
    """Both ends of each, as declared; empty: no cabling is declared there."""
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Chased:
    """What the search found."""

    found: Found
    named: tuple[Named, ...]
    findings: tuple[Finding, ...]


class Chase:
    """One search on some nodes."""

    def __init__(
        self, measurer: Measurer, cluster: Cluster, members: tuple[Node, ...], shell: RootShell
    ) -> None:
        self._measurer, self._cluster, self._members, self._shell = measurer, cluster, members, shell
        self._logs: list[str] = []

    def run(self, smallest: int, largest: int, floor: Floor | None) -> Chased:
        """Run until the smallest set is left; `floor` is the floor of two nodes."""
        most = min(largest, PAIR_LARGEST)
        sizes = max(min(smallest, most), most // 8), most
        nodes = tuple(node.name for node in self._members)
        factor = self._cluster.ssh.time_factor
        search = Search(
            units_of(self._cluster, self._members),
            limit=floor.at(most) if floor is not None else None,
            ports=no_ports(self._cluster, self._members[0]) is None,
            fraction=min(SLOW_FRACTION, FLEET_FRACTION[self._measurer.engine.name]),
        )
        before = read_counters(self._shell, nodes, factor) if self._has_rails else {}
        with side_by_side(RUNS_AT_ONCE) as executor:
            try:
                while runs := search.next_round():
                    done = len(search.found.steps)
                    self._measurer.progress(
                        f"searching for the culprit: run {done + 1} of at most {RUNS_MAX}"
                    )
                    search.tell(list(executor.map(lambda run: self._reading(run, sizes), runs)))
            except BaseException:
                self._measurer.manager.cancel()
                raise
        found = search.found
        accused = tuple(dict.fromkeys(node for one in found.culprits for node in one.nodes))
        after = read_counters(self._shell, accused, factor) if self._has_rails and accused else {}
        named = tuple(self._named(one, before, after) for one in found.culprits)
        return Chased(found, named, tuple(findings_of(found, named)))

    @property
    def _has_rails(self) -> bool:
        return any(rails_of(self._cluster, node) for node in self._members)

    def _reading(self, run: Run, sizes: tuple[int, int]) -> Reading:
        manager = self._measurer.manager
        if busy := not_ready(manager, run.nodes):
            return Reading(problem=", ".join(f"{node} is {state}" for node, state in busy.items()))
        if run.kind == "ports":
            output = manager.run(port_step(self._cluster, run.pairs, latency=False))
            said = by_node(output.text)
            ports: dict[tuple[tuple[str, str], int], float] = {}
            for pair in run.pairs:
                for one in parse_perftest(said.get(pair[0].split(".")[0], ""), pair):
                    key = pair, one.rail
                    ports[key] = min(one.gbps, ports.get(key, one.gbps))
            return Reading(ports=ports, problem=output.problem)
        measured = self._measurer.measure_groups("all_reduce", run.pairs, *sizes)
        problem = trouble_of(measured)
        row = measured.table.largest if measured.table is not None else None
        self._logs.append(measured.output)
        if problem is not None or row is None:
            return Reading(problem=problem or "no figure")
        return Reading(row.busbw_gbs)

    def _named(
        self, culprit: Culprit, before: Mapping[str, NodeState], after: Mapping[str, NodeState]
    ) -> Named:
        if culprit.kind == "uplinks":
            return Named(culprit, self._uplinks(culprit), ())
        cables: list[str] = []
        said: list[str] = []
        for name in culprit.nodes:
            node = self._cluster.by_name[name]
            mine = [
                rail
                for rail in rails_of(self._cluster, node)
                if not culprit.rails or rail.rail in culprit.rails
            ]
            for rail in mine:
                if name in after:
                    prefix = f"{name} {rail.device}: " if len(mine) > 1 or len(culprit.nodes) > 1 else ""
                    said += [
                        prefix + one
                        for one in evidence(before.get(name), after[name], self._declared(node, rail))
                    ]
            for number in culprit.rails:
                cable = cable_of(self._cluster, name, number)
                cables += [_ends(cable.near, cable.far, cable.label)] if cable is not None else []
        logs = [log for log in self._logs if _mentions(log, culprit.nodes)]
        said += [one for log in logs for one in from_log(log)][:1]
        return Named(culprit, tuple(cables), tuple(said))

    def _declared(self, node: Node, rail: Rail) -> Declared:
        cable = cable_of(self._cluster, node.name, rail.rail, rail.network)
        nic = next(
            (
                one
                for one in node.sku.nics
                if one.purpose is NetworkPurpose.FABRIC and one.rail in (None, rail.rail)
            ),
            None,
        )
        speed = cable.speed_gbps if cable is not None and cable.speed_gbps is not None else None
        network, fabric = self._cluster.networks[rail.network], self._cluster.fabrics.get(rail.network)
        return Declared(
            rail,
            speed if speed is not None else (nic.speed_gbps if nic is not None else None),
            network.mtu if rail.kind.converged else None,
            fabric.max_ber if fabric is not None else None,
        )

    def _uplinks(self, culprit: Culprit) -> tuple[str, ...]:
        """The cables between the spines and the leaves of the slow rails of these nodes."""
        leaves: dict[str, None] = {}
        for name in culprit.nodes:
            mine = leaves_of(self._cluster, self._cluster.by_name[name])
            leaves |= dict.fromkeys(
                leaf for rail, leaf in enumerate(mine) if rail in (culprit.rails or (rail,))
            )
        return tuple(
            _ends(cable.near, cable.far, cable.label)
            for fabric in self._cluster.fabrics.values()
            for cable in fabric.cables
            if cable.uplink and getattr(cable.near, "switch", None) in leaves
        )


def _mentions(log: str, nodes: Sequence[str]) -> bool:
    names = "|".join(re.escape(node.split(".")[0]) for node in nodes)
    return re.search(rf"(?<![\w-])(?:{names})(?![\w-])", log) is not None


def _ends(near: object, far: object, label: str | None) -> str:
    return f"{near} to {far}{f' ({label})' if label else ''}"


def findings_of(found: Found, named: Sequence[Named]) -> list[Finding]:
    """The findings as sentences; a set that could not be divided further, and a search without result, are UNKNOWN."""
    runs = f"{len(found.steps)} runs"
    findings = [Finding(Status.FAIL, f"culprit: {_sentence(one)}") for one in named]
    for group in found.unresolved:
        findings.append(
            Finding(Status.UNKNOWN, f"{fold(group)}: slow or not measured, and not separable in {runs}")
        )
    if found.stopped:
        findings.append(Finding(Status.UNKNOWN, f"the search for a culprit stopped: {found.stopped}"))
    if not findings:
        why = (
            f"no pair of nodes is slow below a leaf or across the spines ({runs}): the fault shows only with all nodes "
            "together (congestion control, routing, choice of algorithm), or it is gone"
        )
        findings.append(Finding(Status.UNKNOWN, f"culprit: {why}"))
    return findings


def _sentence(named: Named) -> str:
    one = named.culprit
    reached = f"{one.reached:.4g} GB/s" if one.reached is not None else "no figure"
    rails = f"rail{'s' if len(one.rails) > 1 else ''} {', '.join(map(str, one.rails))}"
    if one.kind == "rail":
        what = f"{' or '.join(one.nodes)} {rails}"
    elif one.kind == "node":
        how = "no single rail" if one.by_rail else "not measured by rail"
        what = f"{' or '.join(one.nodes)}, {how}"
    else:
        what = f"between the spines and the leaves of {fold(one.nodes)}" + (f", {rails}" if one.rails else "")
    shown = ", ".join(named.cables[:CABLES_NAMED])
    more = f" and {len(named.cables) - CABLES_NAMED} more" if len(named.cables) > CABLES_NAMED else ""
    cables = f"; cable{'s' if len(named.cables) > 1 else ''} {shown}{more}" if shown else ""
    hint = "; `rackwright fabric check` reads their errors" if one.kind == "uplinks" else ""
    cause = f"; {joined(named.evidence)}" if named.evidence else ""
    return f"{what}: {reached} with it, {one.of:.4g} without a fault{cables}{cause}{hint}"
