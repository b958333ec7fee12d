"""Reads what ib_write_bw and ib_read_lat print for the rails of a pair, and judges it. Pure.

Columns as in linux-rdma/perftest 6.29 (perftest_parameters.h RESULT_FMT_G and RESULT_FMT_LAT, read 2026-11-25).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from rackwright.burnin.finding import Finding
from rackwright.burnin.on_each import by_node, last_output_line
from rackwright.burnin.pairs import Pair
from rackwright.burnin.possible import impossible
from rackwright.burnin.runs import Way
from rackwright.model.sku import Floor
from rackwright.status import Status

SPEED_MAX_GBPS = 1600
LATENCY_FACTOR = 2.0
"""Times the median of the same way: equal paths through the same kind of switch differ by tenths, not by as much."""
ENOUGH_TO_COMPARE = 8
"""Latencies of one way."""
_PORT = re.compile(r"^# rail ([0-9]{1,3}) (\S{1,80}) (gpu|host|latency)$")
_NO_GID = re.compile(r"^# rail ([0-9]{1,3}) (\S{1,80}) no-gid ([0-9a-f:]{39})$")
_HEADER = re.compile(r"^\s*#bytes\s+#iterations\s+BW peak\[Gb/sec\]\s+BW average\[Gb/sec\]")
_RATE = r"[0-9]{1,12}(?:\.[0-9]{1,12})?"
_ROW = re.compile(
    rf"^\s*\d+\s+(?P<messages>[0-9]{{1,18}})\s+[0-9.]+\s+(?P<gbps>{_RATE})\s+(?P<rate>{_RATE})\s*$"
)
_LATENCY_HEADER = re.compile(r"^\s*#bytes\s+#iterations\s+t_min\[usec\]\s+t_max\[usec\]\s+t_typical\[usec\]")
_NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,6})?)"
_LATENCY_ROW = re.compile(
    rf"^\s*\d+\s+\d+\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s"
)


@dataclass(frozen=True)
class PortFigure:
    """The result of one rail of a pair, from the first node to the second."""

    nodes: Pair
    rail: int
    device: str
    gbps: float
    memory: str
    """`gpu` or `host`."""
    way: Way = "leaf"


@dataclass(frozen=True)
class LatencyFigure:
    """ib_read_lat of 2 bytes on one rail of a pair, between host memories."""

    nodes: Pair
    rail: int
    device: str
    typical_us: float
    p99_us: float
    way: Way = "leaf"


@dataclass(frozen=True)
class Asked:
    """What the output of a pair must show."""

    ports: int
    floor: Floor | None = None
    speed_gbps: int = SPEED_MAX_GBPS
    latency: bool = False
    way: Way = "leaf"


def judge_ports(
    text: str, pair: Pair, asked: Asked
) -> tuple[list[PortFigure], list[LatencyFigure], list[Finding]]:
    """Rails below the floor, without a figure, without their GID, or with impossible figures, by name."""
    said = by_node(text)
    client = said.get(pair[0].split(".")[0], "")
    printed, most = parse_perftest(client, pair, asked.way), 2.0 * asked.speed_gbps
    figures = [one for one in printed if one.gbps <= most]
    where = f"{_pair(pair)}{' across the spines' if asked.way == 'spine' else ''}"
    findings = [
        Finding(
            Status.UNKNOWN, impossible(f"ib_write_bw: rail {one.rail} of {where}", one.gbps, most, "Gb/s")
        )
        for one in printed
        if not one.gbps <= most
    ]
    findings += [
        Finding(
            Status.FAIL,
            f"ib_write_bw: rail {one.rail} ({one.device}) of {where} reaches {one.gbps:g} Gb/s from {one.memory} "
            f"memory, below the floor of {asked.floor.floor:g} ({asked.floor.source.text}, "
            f"read {asked.floor.source.read.isoformat()})",
        )
        for one in figures
        if asked.floor is not None and one.gbps < asked.floor.floor
    ]
    findings += _without_gid(said)
    without_clock = _without_clock(client, where)
    findings += without_clock.values()
    latencies = parse_latency(client, pair, asked.way) if asked.latency else []
    words = last_output_line(
        "\n".join(line for line in client.splitlines() if not line.startswith(("-", " ---")))
    )
    if not client.strip() and said:
        words = last_output_line(next(iter(said.values())))
    there, timed = len({one.rail for one in figures} | set(without_clock)), len(latencies)
    what, shown = ("ib_write_bw", there) if there != asked.ports else ("ib_read_lat", timed)
    if there != asked.ports or (asked.latency and timed != asked.ports):
        why = f"{what}: {shown} of {asked.ports} rails of {where} have a figure: {words}"
        findings.append(Finding(Status.UNKNOWN, why))
    return figures, latencies, findings


def _without_gid(said: dict[str, str]) -> list[Finding]:
    return [
        Finding(
            Status.FAIL,
            f"ib_write_bw: rail {found[1]} ({found[2]}) of {node} has no RoCE v2 GID {found[3]} for its declared "
            "address",
        )
        for node, text in said.items()
        for line in text.splitlines()
        if (found := _NO_GID.match(line))
    ]


def judge_latency(figures: list[LatencyFigure]) -> list[Finding]:
    """Rails that take twice as long as others the same way; no floor is published that holds for every fabric."""
    findings = []
    for way, words in (("leaf", "below one leaf"), ("spine", "across the spines")):
        mine = [one for one in figures if one.way == way]
        if len(mine) < ENOUGH_TO_COMPARE:
            continue
        middle = median(one.typical_us for one in mine)
        findings += [
            Finding(
                Status.WARN,
                f"ib_read_lat: rail {one.rail} ({one.device}) of {_pair(one.nodes)} takes {one.typical_us:g} us, "
                f"{one.typical_us / middle:.1f} times the median of {len(mine)} rails {words} ({middle:g} us)",
            )
            for one in mine
            if one.typical_us > LATENCY_FACTOR * middle
        ]
    return findings


def parse_perftest(text: str, pair: Pair, way: Way = "leaf") -> list[PortFigure]:
    """The average of each rail, Gb/s; with -D perftest prints no peak."""
    return [
        PortFigure(pair, int(port[1]), port[2], float(row["gbps"]), port[3], way)
        for port, row in _rows(text)
        if not _lacks_time(row)
    ]


def _rows(text: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """The heading of each rail with the row of its table."""
    port, table = None, False
    for line in text.splitlines():
        if found := _PORT.match(line):
            port, table = found, False
        elif _HEADER.match(line):
            table = True
        elif table and port is not None and (row := _ROW.match(line)):
            yield port, row
            port = None


def _lacks_time(row: re.Match[str]) -> bool:
    """Whether perftest counted messages but could not measure how long they took.

    When it reports, it samples the frequency of its clock; where the samples disagree (r^2 under 0.9: a clock source that
    is slow to read, a machine under load), its option -F turns every rate into 0 (get_clock.c, print_report_bw).
    """
    return int(row["messages"]) > 0 and float(row["rate"]) == 0


def _without_clock(text: str, where: str) -> dict[int, Finding]:
    """By rail: perftest's clock failed, which proves nothing about the port."""
    return {
        int(port[1]): Finding(
            Status.UNKNOWN,
            f"ib_write_bw: rail {port[1]} ({port[2]}) of {where} wrote {row['messages']} messages in a time that perftest "
            "could not measure (correlation of its clock below 0.9): see the health check cpu-clocksource",
        )
        for port, row in _rows(text)
        if _lacks_time(row)
    }


def parse_latency(text: str, pair: Pair, way: Way = "leaf") -> list[LatencyFigure]:
    """Typical time and 99th percentile of each rail, us."""
    figures: list[LatencyFigure] = []
    port, table = None, False
    for line in text.splitlines():
        if found := _PORT.match(line):
            port, table = found, False
        elif _LATENCY_HEADER.match(line):
            table = True
        elif table and port is not None and (row := _LATENCY_ROW.match(f"{line} ")):
            figures.append(LatencyFigure(pair, int(port[1]), port[2], float(row[3]), float(row[6]), way))
            port = None
    return figures


def _pair(pair: Pair) -> str:
    return f"{pair[0]} -> {pair[1]}"
