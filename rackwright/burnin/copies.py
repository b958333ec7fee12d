"""Copies between the host and each GPU, measured by NVIDIA's nvbandwidth and judged by the SKU's floors.

nvbandwidth and not cuda-samples' bandwidthTest, which CUDA 12.9 removed. Format as in NVIDIA/nvbandwidth v0.8
(output.cpp, json_output.cpp; read 2026-11-23): "Running TEST.", a line of GPU numbers, and one row of GB/s.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rackwright.boundary import read_json
from rackwright.burnin.finding import Finding
from rackwright.burnin.on_each import by_node, last_output_line, no_nvidia, step_on_each
from rackwright.burnin.possible import copy_max, impossible
from rackwright.model.cluster import Node
from rackwright.model.ranges import fold
from rackwright.model.settings import Burnin
from rackwright.model.sku import Metric, Sku
from rackwright.status import Status
from rackwright.workload.protocol import Manager

TESTS = {"host_to_device_memcpy_ce": Metric.H2D_GBS, "device_to_host_memcpy_ce": Metric.D2H_GBS}
COPY_SECONDS = 300
_RUNNING = re.compile(r"^Running (\w+)\.?$")
_ROW = re.compile(r"^\s*(\d+)((?:\s+(?:[0-9.]+|N/A))*)\s*$")


@dataclass(frozen=True)
class CopyFigure:
    """The result of one GPU in one direction."""

    node: str
    test: str
    gpu: int
    gbs: float


def measure_copies(
    manager: Manager, settings: Burnin, members: tuple[Node, ...], progress: Callable[[str], None]
) -> tuple[tuple[CopyFigure, ...], tuple[Finding, ...]]:
    """Both directions on every GPU, one GPU at a time, on all nodes in parallel."""
    gpus = members[0].sku.gpus
    why = no_nvidia(members[0])
    if why is None and members[0].mig:
        why = "the GPUs are in MIG mode, and the floors are for whole GPUs"
    if why is not None or gpus is None:
        return (), (Finding(Status.OUT_OF_SCOPE, f"nvbandwidth: {why}"),)
    names = tuple(node.name for node in members)
    progress(f"nvbandwidth on {fold(names)}")
    output = manager.run(step_on_each(settings, members, f"nvbandwidth -t {' '.join(TESTS)}", COPY_SECONDS))
    figures, findings = judge_copies(output.text, names, gpus.count, members[0].sku)
    if output.problem is not None:
        findings.append(Finding(Status.UNKNOWN, f"nvbandwidth: {output.problem}"))
    return tuple(figures), tuple(findings)


def judge_copies(
    text: str, nodes: tuple[str, ...], gpus: int, sku: Sku
) -> tuple[list[CopyFigure], list[Finding]]:
    """GPUs below the floor, by name; a GPU without a figure and a figure without a floor are UNKNOWN."""
    figures: list[CopyFigure] = []
    findings: list[Finding] = []
    said, most = by_node(text), copy_max(sku)
    for node in nodes:
        mine = said.get(node.split(".")[0], "")
        found = parse_nvbandwidth(mine)
        for test, metric in TESTS.items():
            reached = {gpu: gbs for gpu, gbs in found.get(test, {}).items() if gbs <= most}
            findings += [
                Finding(
                    Status.UNKNOWN,
                    impossible(f"nvbandwidth: {test}: GPU {gpu} of {node}", gbs, most, "GB/s"),
                )
                for gpu, gbs in found.get(test, {}).items()
                if not gbs <= most
            ]
            figures += [CopyFigure(node, test, gpu, gbs) for gpu, gbs in sorted(reached.items())]
            if len(reached) != gpus:
                why = f"nvbandwidth: {test}: {len(reached)} of {gpus} GPUs of {node} have a figure: {last_output_line(mine)}"
                findings.append(Finding(Status.UNKNOWN, why))
            floor = sku.floor(metric)
            if floor is not None:
                findings += [
                    Finding(
                        Status.FAIL,
                        f"nvbandwidth: {test}: GPU {gpu} of {node} reaches {gbs:g} GB/s, below the floor of "
                        f"{floor.floor:g} ({floor.source.text}, read {floor.source.read.isoformat()})",
                    )
                    for gpu, gbs in sorted(reached.items())
                    if gbs < floor.floor
                ]
    for test, metric in TESTS.items():
        if sku.floor(metric) is None:
            findings.append(
                Finding(Status.UNKNOWN, f"nvbandwidth: {test}: SKU {sku.name} declares no floor {metric}")
            )
    return figures, findings


def parse_nvbandwidth(text: str) -> dict[str, dict[int, float]]:
    """GB/s by test and GPU from the text or the JSON (`--json`); tests that did not run are absent."""
    if text.lstrip().startswith("{"):
        return _from_json(text)
    found: dict[str, dict[int, float]] = {}
    test: str | None = None
    columns: list[str] = []
    for line in text.splitlines():
        if running := _RUNNING.match(line.strip()):
            test, columns = running[1], []
        elif test is not None and (row := _ROW.match(line)):
            cells = [row[1], *row[2].split()]
            if not columns:
                columns = cells
            elif len(cells) == len(columns) + 1 and test not in found:  # one row: the CPU against each GPU
                found[test] = _numbers(zip(columns, cells[1:], strict=True))
    return found


def _numbers(pairs: Any) -> dict[int, float]:  # noqa: ANN401 - zip of text
    """Empty if one of them is not a number: nvbandwidth did not print this row."""
    try:
        return {int(str(gpu)[:9]): float(value) for gpu, value in pairs if value != "N/A"}
    except (ValueError, OverflowError):
        return {}


def _from_json(text: str) -> dict[str, dict[int, float]]:
    try:
        tests = read_json(text)["nvbandwidth"]["testcases"]
        return {
            test["name"]: _numbers((str(gpu), value) for gpu, value in enumerate(test["bandwidth_matrix"][0]))
            for test in tests
            if test.get("status") == "Passed" and test.get("bandwidth_matrix")
        }
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return {}
