"""Every fabric port against the same port of a leaf peer: perftest's ib_write_bw, judged by the SKU's floor.

A pair is two nodes of one leaf switch where switches are declared, so that a figure is of two ports and one switch.
From the memory of the GPU beside the port where perftest is built with CUDA and dma-buf, else from host memory; the
figure says which. Columns as in linux-rdma/perftest 6.29 (perftest_parameters.h RESULT_FMT_G, read 2026-11-23).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rackwright.burnin.finding import Finding
from rackwright.burnin.on_each import by_node, last_output_line, search_path
from rackwright.burnin.pairs import Pair, pair_rounds
from rackwright.burnin.possible import impossible
from rackwright.model.cluster import Node
from rackwright.model.settings import Burnin
from rackwright.model.sku import Floor, Metric
from rackwright.model.types import NetworkPurpose
from rackwright.render import render
from rackwright.ssh.side_by_side import side_by_side
from rackwright.status import Status
from rackwright.workload.protocol import Manager, Step, gpus_of

PAIRS_AT_ONCE = 16
SECONDS_EACH = 5
SPEED_MAX_GBPS = 1600
_PORT = re.compile(r"^# rail ([0-9]{1,3}) (\S{1,80}) (gpu|host)$")
_HEADER = re.compile(r"^\s*#bytes\s+#iterations\s+BW peak\[Gb/sec\]\s+BW average\[Gb/sec\]")
_ROW = re.compile(r"^\s*\d+\s+\d+\s+[0-9.]+\s+([0-9]{1,12}(?:\.[0-9]{1,12})?)\s+[0-9.]+\s*$")


@dataclass(frozen=True)
class PortFigure:
    """What one rail of a pair reached, from the first node to the second."""

    nodes: Pair
    rail: int
    device: str
    gbps: float
    memory: str
    """`gpu` or `host`."""


def leaf_pairs(members: Sequence[Node]) -> list[list[Pair]]:
    """Rounds of disjoint pairs, each of two nodes of one leaf; nodes without a switch count as of one leaf."""
    leaves: dict[str | None, list[str]] = {}
    for node in members:
        leaves.setdefault(node.switch, []).append(node.name)
    rounds: list[list[Pair]] = []
    for names in leaves.values():
        for number, pairs in enumerate(pair_rounds(names, 1)):
            rounds += [[]] if number == len(rounds) else []
            rounds[number] += pairs
    return rounds


def measure_ports(
    manager: Manager, settings: Burnin, members: tuple[Node, ...], progress: Callable[[str], None]
) -> tuple[tuple[PortFigure, ...], tuple[Finding, ...]]:
    """Every rail of every node, against a node of the same leaf."""
    first = members[0]
    fabric = [nic for nic in first.sku.nics if nic.purpose is NetworkPurpose.FABRIC]
    rounds = leaf_pairs(members)
    paired = {name for pairs in rounds for pair in pairs for name in pair}
    alone = [node.name for node in members if node.name not in paired]
    findings = [
        Finding(Status.OUT_OF_SCOPE, f"ib_write_bw: {name} has no peer on its leaf") for name in alone
    ]
    why = None if fabric else f"SKU {first.sku.name} declares no fabric port"
    if why is None and first.simulates_gpus:
        why = "the ports are simulated by the lab"
    if why is not None:
        return (), (Finding(Status.OUT_OF_SCOPE, f"ib_write_bw: {why}"),)
    figures: list[PortFigure] = []
    floor = first.sku.floor(Metric.IB_WRITE_GBPS)
    with side_by_side(PAIRS_AT_ONCE) as executor:
        try:
            for pairs in rounds:
                progress(f"ib_write_bw of {len(pairs)} pairs")
                steps = [
                    port_step(settings, first, pair, len(fabric), fabric[0].speed_gbps) for pair in pairs
                ]
                for pair, output in zip(pairs, executor.map(manager.run, steps), strict=True):
                    found, against = judge_ports(output.text, pair, len(fabric), floor, fabric[0].speed_gbps)
                    figures += found
                    findings += against
                    if output.problem is not None and not against:
                        findings.append(
                            Finding(Status.UNKNOWN, f"ib_write_bw: {_pair(pair)}: {output.problem}")
                        )
        except BaseException:
            manager.cancel()
            raise
    if floor is None and figures:
        why = f"SKU {first.sku.name} has no floor {Metric.IB_WRITE_GBPS}"
        findings.append(Finding(Status.UNKNOWN, f"ib_write_bw: {why}"))
    return tuple(figures), tuple(findings)


def port_step(settings: Burnin, node: Node, pair: Pair, ports: int, speed_gbps: int) -> Step:
    """The first node of the pair writes to the second, rail after rail."""
    near = [nic.near_gpus for nic in node.sku.nics if nic.purpose is NetworkPurpose.FABRIC]
    script = render(
        "burnin/ib_write.sh.j2",
        path=search_path(node),
        client=pair[0].split(".")[0],
        server=pair[1],
        devices=devices_of(settings.nccl_env.get("NCCL_IB_HCA", "")),
        ports=ports,
        speed=speed_gbps,
        seconds=SECONDS_EACH,
        gpus=[found[0] if found else rail for rail, found in enumerate(near)]
        if node.sku.gpus is not None
        else [],
    )
    return Step(
        nodes=pair,
        tasks_per_node=1,
        command=("sh", "-c", script),
        timeout_seconds=120 + ports * (SECONDS_EACH + 30),
        queue=settings.partition,
        gpus=gpus_of(node),
    )


def devices_of(hca: str) -> tuple[str, ...]:
    """The RDMA devices that NCCL_IB_HCA lists by their whole names, in the order of the rails; none for a prefix."""
    names = [name.partition(":")[0] for name in hca.lstrip("=").split(",") if name]
    whole = all(re.fullmatch(r"[A-Za-z0-9_]*\d", name) for name in names)
    return tuple(names) if whole and len(names) > 1 and not hca.startswith("^") else ()


def judge_ports(
    text: str, pair: Pair, ports: int, floor: Floor | None, speed_gbps: int = SPEED_MAX_GBPS
) -> tuple[list[PortFigure], list[Finding]]:
    """Rails under the floor, rails without a figure, and figures that a port of this speed cannot reach, by name."""
    said = by_node(text)
    client = said.get(pair[0].split(".")[0], "")
    printed, most = parse_perftest(client, pair), 2.0 * speed_gbps
    figures = [one for one in printed if one.gbps <= most]
    findings = [
        Finding(
            Status.UNKNOWN,
            impossible(f"ib_write_bw: rail {one.rail} of {_pair(pair)}", one.gbps, most, "Gb/s"),
        )
        for one in printed
        if not one.gbps <= most
    ]
    findings += [
        Finding(
            Status.FAIL,
            f"ib_write_bw: rail {one.rail} ({one.device}) of {_pair(pair)} reaches {one.gbps:g} Gb/s from {one.memory} "
            f"memory, under the floor of {floor.floor:g} ({floor.source.text}, read {floor.source.read.isoformat()})",
        )
        for one in figures
        if floor is not None and one.gbps < floor.floor
    ]
    if len(figures) != ports:
        words = last_output_line(
            "\n".join(line for line in client.splitlines() if not line.startswith(("-", " ---")))
        )
        if not client.strip() and said:
            words = last_output_line(next(iter(said.values())))
        findings.append(
            Finding(
                Status.UNKNOWN,
                f"ib_write_bw: {len(figures)} of {ports} rails of {_pair(pair)} have a figure: {words}",
            )
        )
    return figures, findings


def parse_perftest(text: str, pair: Pair) -> list[PortFigure]:
    """The average of each rail, Gb/s; with -D perftest prints no peak."""
    figures: list[PortFigure] = []
    port, table = None, False
    for line in text.splitlines():
        if found := _PORT.match(line):
            port, table = found, False
        elif _HEADER.match(line):
            table = True
        elif table and port is not None and (row := _ROW.match(line)):
            figures.append(PortFigure(pair, int(port[1]), port[2], float(row[1]), port[3]))
            port = None
    return figures


def _pair(pair: Pair) -> str:
    return f"{pair[0]} -> {pair[1]}"
