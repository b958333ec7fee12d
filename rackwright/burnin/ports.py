"""Tests every fabric port against the same port of a leaf peer and of a node across the spines, with perftest and floors.

A leaf pair is two nodes below the same leaves, so that a figure is of two ports and one switch; a pair across the spines
adds what is between leaf and spine. From host memory, and from the memory of the GPU beside the port where perftest is
built with CUDA and dma-buf; each figure records which.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rackwright.burnin.finding import Finding
from rackwright.burnin.on_each import search_path
from rackwright.burnin.pairs import Pair, pair_rounds
from rackwright.burnin.port_output import Asked, LatencyFigure, PortFigure, judge_latency, judge_ports
from rackwright.burnin.rails import rails_of, units_of
from rackwright.burnin.runs import Way
from rackwright.model.cluster import Cluster, Node
from rackwright.model.sku import Metric
from rackwright.model.types import NetworkPurpose
from rackwright.render import render
from rackwright.ssh.side_by_side import side_by_side
from rackwright.status import Status
from rackwright.workload.protocol import JobStep, Manager, gpus_of

PAIRS_AT_ONCE = 16
SECONDS_EACH = 5
START_SECONDS = 25
"""Time for perftest to start and connect; multiplied by the time factor of slow systems."""
CLOCK_TRIES = 3
"""Of a run whose time perftest could not measure; three take less than one may."""
FIRST_PORT = 18515


@dataclass(frozen=True)
class PortStage:
    """The findings of the stage."""

    figures: tuple[PortFigure, ...] = ()
    latencies: tuple[LatencyFigure, ...] = ()
    findings: tuple[Finding, ...] = ()


def leaf_pairs(cluster: Cluster, members: Sequence[Node]) -> list[list[Pair]]:
    """Rounds of disjoint pairs, each of two nodes below the same leaves."""
    rounds: list[list[Pair]] = []
    for names in units_of(cluster, members):
        for number, pairs in enumerate(pair_rounds(names, 1)):
            rounds += [[]] if number == len(rounds) else []
            rounds[number] += pairs
    return rounds


def spine_pairs(cluster: Cluster, members: Sequence[Node]) -> list[list[Pair]]:
    """Rounds of disjoint pairs, each of two nodes below different leaves; every node comes once at least."""
    units = {f"{number}": names for number, names in enumerate(units_of(cluster, members))}
    rounds: list[list[Pair]] = []
    for turn in pair_rounds(tuple(units), 1):
        together: list[Pair] = []
        more: list[Pair] = []
        for one, two in turn:
            short, long = sorted((units[one], units[two]), key=len)
            together += zip(short, long, strict=False)
            more += [(short[n % len(short)], node) for n, node in enumerate(long[len(short) :])]
        rounds.append(together)
        while more:
            taken: set[str] = set()
            now = []
            for pair in more:
                if not taken & set(pair):
                    taken |= set(pair)
                    now.append(pair)
            rounds.append(now)
            more = [pair for pair in more if pair not in now]
    return rounds


def number_of_ports(cluster: Cluster, node: Node) -> int:
    """Devices that a role declares on the node, else the fabric ports of its SKU."""
    declared = rails_of(cluster, node)
    return len(declared) or sum(nic.purpose is NetworkPurpose.FABRIC for nic in node.sku.nics)


def no_ports(cluster: Cluster, node: Node) -> str | None:
    """The reason why ib_write_bw cannot run on a node like this one, or None."""
    if not number_of_ports(cluster, node):
        return f"SKU {node.sku.name} declares no fabric port"
    return "the ports are simulated by the lab" if node.simulates_gpus else None


def measure_ports(
    manager: Manager, cluster: Cluster, members: tuple[Node, ...], progress: Callable[[str], None]
) -> PortStage:
    """Every rail of every node, against a node of the same leaf and against one across the spines."""
    why = no_ports(cluster, members[0])
    if why is not None:
        return PortStage(findings=(Finding(Status.OUT_OF_SCOPE, f"ib_write_bw: {why}"),))
    near, far = leaf_pairs(cluster, members), spine_pairs(cluster, members)
    paired = {name for pairs in near for pair in pairs for name in pair}
    findings = [
        Finding(Status.OUT_OF_SCOPE, f"ib_write_bw: {node.name} has no peer on its leaf")
        for node in members
        if node.name not in paired
    ]
    ways: tuple[tuple[Way, list[list[Pair]]], ...] = (("leaf", near), ("spine", far))
    figures: list[PortFigure] = []
    latencies: list[LatencyFigure] = []
    for way, rounds in ways:
        for pairs in rounds:
            progress(
                f"ib_write_bw of {len(pairs)} pairs {'across the spines' if way == 'spine' else 'of a leaf'}"
            )
            found = _round(manager, cluster, members[0], pairs, way)
            figures += found.figures
            latencies += found.latencies
            findings += found.findings
    findings += judge_latency(latencies)
    if figures and members[0].sku.floor(Metric.IB_WRITE_GBPS) is None:
        findings.append(_without_floor(cluster, members[0]))
    return PortStage(tuple(figures), tuple(latencies), tuple(findings))


def _round(manager: Manager, cluster: Cluster, first: Node, pairs: list[Pair], way: Way) -> PortStage:
    asked = Asked(
        number_of_ports(cluster, first),
        first.sku.floor(Metric.IB_WRITE_GBPS),
        _speed(first) or Asked.speed_gbps,
        latency=True,
        way=way,
    )
    figures: list[PortFigure] = []
    latencies: list[LatencyFigure] = []
    findings: list[Finding] = []
    with side_by_side(PAIRS_AT_ONCE) as executor:
        try:
            steps = [port_step(cluster, [pair]) for pair in pairs]
            for pair, output in zip(pairs, executor.map(manager.run, steps), strict=True):
                found, times, against = judge_ports(output.text, pair, asked)
                figures += found
                latencies += times
                findings += against
                if output.problem is not None and not against:
                    why = f"ib_write_bw: {pair[0]} -> {pair[1]}: {output.problem}"
                    findings.append(Finding(Status.UNKNOWN, why))
        except BaseException:
            manager.cancel()
            raise
    return PortStage(tuple(figures), tuple(latencies), tuple(findings))


def _without_floor(cluster: Cluster, node: Node) -> Finding:
    hint = f"SKU {node.sku.name} has no floor {Metric.IB_WRITE_GBPS}"
    if any(rail.software for rail in rails_of(cluster, node)):
        return Finding(Status.OUT_OF_SCOPE, f"ib_write_bw: software devices are measured, not judged: {hint}")
    return Finding(Status.UNKNOWN, f"ib_write_bw: {hint}")


def _speed(node: Node) -> int | None:
    return next((nic.speed_gbps for nic in node.sku.nics if nic.purpose is NetworkPurpose.FABRIC), None)


def port_step(cluster: Cluster, pairs: Sequence[Pair], *, latency: bool = True) -> JobStep:
    """The first node of each pair writes to the second, rail after rail, all pairs in parallel."""
    settings, factor = cluster.burnin, cluster.ssh.time_factor
    first = cluster.by_name[pairs[0][0]]
    near = [nic.near_gpus for nic in first.sku.nics if nic.purpose is NetworkPurpose.FABRIC]
    ports = number_of_ports(cluster, first)
    gpus = first.sku.gpus is not None and not first.simulates_gpus
    memories = ("host", "gpu") if gpus else ("host",)
    patience = SECONDS_EACH + START_SECONDS * factor
    script = render(
        "burnin/ib_write.sh.j2",
        path=search_path(first),
        nodes=[
            _of_node(cluster, node, pair[1] if node == pair[0] else "") for pair in pairs for node in pair
        ],
        ports=ports,
        speed=_speed(first) or 0,
        seconds=SECONDS_EACH,
        patience=patience,
        tries=" ".join(map(str, range(CLOCK_TRIES))),
        base=FIRST_PORT,
        memories=memories,
        latency=latency,
        gpus=[found[0] if found else rail for rail, found in enumerate(near)] if gpus else [],
    )
    runs = ports * (len(memories) + latency)
    return JobStep(
        nodes=tuple(node for pair in pairs for node in pair),
        tasks_per_node=1,
        command=("sh", "-c", script),
        timeout_seconds=120 * factor + runs * (patience + 5),
        queue=settings.partition,
        gpus=gpus_of(first),
        start="each",
    )


def _of_node(cluster: Cluster, name: str, server: str) -> dict[str, object]:
    """The script's input for one node: its peer, its devices by rail and their GIDs."""
    rails = rails_of(cluster, cluster.by_name[name])
    named = devices_of(cluster.burnin.nccl_env.get("NCCL_IB_HCA", ""))
    gids = [rail.gid for rail in rails]
    return {
        "name": name.split(".")[0],
        "server": server,
        "devices": [f"{rail.device}:{rail.port}" for rail in rails] or [f"{device}:1" for device in named],
        "gids": gids if all(gids) else [],
    }


def devices_of(hca: str) -> tuple[str, ...]:
    """The RDMA devices that NCCL_IB_HCA lists by their whole names, in the order of the rails; none for a prefix."""
    names = [name.partition(":")[0] for name in hca.lstrip("=").split(",") if name]
    whole = all(re.fullmatch(r"[A-Za-z0-9_]*\d", name) for name in names)
    return tuple(names) if whole and len(names) > 1 and not hca.startswith("^") else ()
